/** An incident that happens while somebody looks: what they see, how soon, and what they can do by keyboard. */
import { waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { inTime } from '../../../holdfast/test/support/in-time.ts'
import {
  cast,
  type Role,
  stagedWaits,
  stageIncident,
} from '../../../holdfast/test/support/staged-incident.ts'
import {
  chromiumProgram,
  type ConsoleBrowser,
  sizes,
  startBrowser,
  type WatchedPage,
} from '../support/console-browser.ts'
import { logIn, settled } from '../support/console-visitor.ts'
import { openShop, type Shop } from '../support/shop-under-load.ts'
import { tokens } from '../support/started-console.ts'

/** Of each session of the list: under whom it stands, and in which words. */
interface Shown {
  readonly pid: number
  readonly parent: number | undefined
  readonly text: string
}

const readList = `[...document.querySelectorAll('.blocking-list li')].map((item) => ({
  pid: Number(item.dataset.pid),
  parent: item.parentElement.closest('li') && Number(item.parentElement.closest('li').dataset.pid),
  text: item.querySelector('.row').innerText.replace(/\\s+/g, ' '),
}))`

const readGraph = `({
  cards: [...document.querySelectorAll('.graph .card')].map((card) => {
    const box = card.getBoundingClientRect()
    return { pid: Number(card.dataset.pid), x: box.x, y: box.y, text: card.textContent }
  }),
  locks: [...document.querySelectorAll('.graph .pill')].map((pill) => pill.dataset.lock),
  soft: document.querySelectorAll('.graph .edge-soft').length,
})`

describe.skipIf(chromiumProgram === undefined)('an incident', () => {
  let browser: ConsoleBrowser
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop()
    browser = await startBrowser()
  })
  afterAll(async () => {
    await browser.close()
    await shop.end()
  })

  async function visit(token: string, path = 'now'): Promise<WatchedPage> {
    const opened = await browser.open({ viewport: sizes.desktop })
    await logIn(opened, shop.origin, token)
    await opened.page.goto(`${shop.origin}/${path}`)
    await settled(opened)
    return opened
  }

  test('is drawn within 2 s, root first, everybody under whoever blocks them, by name', async () => {
    const opened = await visit(tokens.view)
    const { page } = opened
    await page.waitForSelector('.quiet')
    const incident = await stageIncident(shop.url)
    onTestFinished(() => incident.end())

    const everybody = cast.map((role) => `.blocking-list li[data-pid="${incident.pids[role]}"]`)
    for (const selector of everybody) await page.waitForSelector(selector, { state: 'attached' })
    const seenAfterMs = performance.now() - incident.happenedAt
    process.stdout.write(`seen after ${Math.round(seenAfterMs)} ms\n`)
    inTime(seenAfterMs, 2_000)

    const list = (await page.evaluate(readList)) as Shown[]
    const { pids, roleOf } = incident
    // Guards of the load may wait for a moment too, and are no part of this.
    const shown = list.filter(({ pid }) => roleOf(pid) !== undefined)
    expect(shown[0]?.pid).toBe(pids.billing)
    expect(shown).toHaveLength(cast.length)
    expect(new Set(shown.map(({ pid }) => roleOf(pid)))).toEqual(new Set(cast))
    const rootText = shown[0]?.text ?? ''
    expect(rootText).toContain('idle in transaction')
    expect(rootText).toContain('blocks 11 sessions')
    for (const [role, { waitsFor, hard, soft }] of Object.entries(stagedWaits)) {
      const row = shown.find(({ pid }) => pid === pids[role as Role])
      const parent = roleOf(row?.parent ?? 0)
      expect([...hard, ...soft]).toContain(parent)
      // Whoever else is in the way is named too.
      const others = [...hard, ...soft].filter((other) => other !== parent)
      for (const words of [
        role,
        `for ${waitsFor}`,
        ...(hard.length > 0 ? [] : ['queued']),
        ...others.map((other) => String(pids[other])),
      ]) {
        expect(row?.text).toContain(words)
      }
    }

    const graph = (await page.evaluate(readGraph)) as {
      cards: { pid: number; x: number; y: number; text: string }[]
      locks: string[]
      soft: number
    }
    const card = (role: Role): (typeof graph.cards)[number] | undefined =>
      graph.cards.find(({ pid }) => pid === pids[role])
    for (const [role, { hard, soft }] of Object.entries(stagedWaits)) {
      const own = card(role as Role)
      expect(own?.text).toContain('waits')
      // To the right of somebody in its way.
      const leftmost = Math.min(...[...hard, ...soft].map((other) => card(other)?.x ?? Infinity))
      expect(own?.x).toBeGreaterThan(leftmost)
    }
    expect(Math.min(...graph.cards.map(({ x }) => x))).toBe(card('billing')?.x)
    expect(new Set(graph.locks)).toEqual(
      new Set(Object.values(stagedWaits).map(({ waitsFor }) => waitsFor)),
    )
    expect(graph.soft).toBeGreaterThanOrEqual(3)
    expect(await page.title()).toMatch(/^1\d wait · Now/)
    await opened.screenshot('incident')

    // Its time grows while one looks.
    const age = async (): Promise<string> => await page.innerText('.incident-facts')
    const before = await age()
    await waitUntil('the age grows', async () => ((await age()) === before ? undefined : true))
    expect(opened.complaints.filter((text) => !text.includes('401'))).toEqual([])
    await page.context().close()
  })

  test('is walked through by keyboard alone, to the end of it', async () => {
    const incident = await stageIncident(shop.url)
    onTestFinished(() => incident.end().catch(() => undefined))
    const { pids } = incident
    const opened = await browser.open({ viewport: sizes.desktop })
    const { page } = opened
    const focused = (): Promise<string> =>
      page.evaluate(
        `(document.activeElement.innerText || document.activeElement.ariaLabel || '').replace(/\\s+/g, ' ').trim()`,
      )
    const press = (key: string): Promise<void> => page.keyboard.press(key)
    /** Tabs until something is reached, as a person does. */
    const tabTo = async (what: string | RegExp, most = 40): Promise<void> => {
      for (let step = 0; step < most; step += 1) {
        const text = await focused()
        if (typeof what === 'string' ? text.includes(what) : what.test(text)) return
        await press('Tab')
      }
      throw new Error(`${most} tabs did not lead to ${what}; the focus is on ${await focused()}`)
    }

    await page.goto(`${shop.origin}/now`)
    await page.waitForSelector('input[name=token]')
    await press('Tab')
    await page.keyboard.type(tokens.operate)
    await press('Enter')
    await page.waitForSelector(`.blocking-list li[data-pid="${pids.dashboard}"]`, {
      state: 'attached',
    })
    // The skip link is the first stop, and leads past the navigation.
    await page.evaluate('document.activeElement.blur()')
    await press('Tab')
    expect(await focused()).toBe('Skip to the content')
    await press('Enter')
    expect(await page.evaluate('document.activeElement.id')).toBe('main')

    // To the root in the list; the graph frames it.
    await tabTo(new RegExp(`^billing ${pids.billing}`))
    await page.waitForSelector(`.graph .card-focused[data-pid="${pids.billing}"]`)
    await press('ArrowDown')
    expect(await focused()).not.toContain('billing')
    await press('ArrowUp')
    await press('Enter')
    await page.waitForSelector('aside.panel')
    expect(await focused()).toBe(`pid ${pids.billing}`)
    // A session may pause for a second before anybody is told what to do about it.
    const panel = await waitUntil('it is advised what to do', async () => {
      const text = await page.innerText('aside.panel')
      return text.includes('idle_in_transaction_session_timeout') ? text : undefined
    })
    expect(panel).toContain('idle in transaction')
    expect(panel).toContain(`holdfast why ${pids.billing}`)

    // Its lock, who has it, who wants it; and back.
    await tabTo('cart:7')
    await press('Enter')
    await page.waitForSelector('aside[aria-label="Lock cart:7"]')
    const lock = await page.innerText('aside.panel')
    expect(lock).toContain(`pid ${pids.billing} billing`)
    expect(lock).toMatch(
      new RegExp(`pid ${pids['checkout-1']} checkout-1[^]*pid ${pids['checkout-2']}`),
    )
    await press('Escape')
    await page.waitForSelector('aside.panel', { state: 'detached' })

    // Cancel the statement of one that waits. The safe answer comes first, and Escape gives it.
    await page.goto(`${shop.origin}/now?pid=${pids['checkout-2']}`)
    await page.waitForSelector('aside.panel h3:has-text("End it")')
    await tabTo(/^Cancel the statement/)
    await press('Enter')
    await page.waitForSelector('dialog[open]')
    expect(await focused()).toBe('Keep it')
    await press('Escape')
    await page.waitForSelector('dialog[open]', { state: 'detached' })
    expect(await focused()).toMatch(/^Cancel the statement/)
    expect(await waiting(shop.url, pids['checkout-2'])).toBe(true)
    await press('Enter')
    await page.waitForSelector('dialog[open]')
    await press('Tab')
    expect(await focused()).toBe('Cancel the statement')
    await press('Enter')
    await page.waitForSelector(`.blocking-list li[data-pid="${pids['checkout-2']}"]`, {
      state: 'detached',
    })
    expect(await waiting(shop.url, pids['checkout-2'])).toBe(false)

    // The root runs no statement: only ending its session helps, and the console says so.
    await page.goto(`${shop.origin}/now?pid=${pids.billing}`)
    await page.waitForSelector('aside.panel h3:has-text("End it")')
    expect(await page.innerText('aside.panel')).toContain('cancelling would change nothing')
    await tabTo(/^End the session/)
    await press('Enter')
    await page.waitForSelector('dialog[open]')
    await opened.screenshot('confirm')
    await press('Tab')
    await press('Enter')
    await page.waitForSelector(`.blocking-list li[data-pid="${pids.billing}"]`, {
      state: 'detached',
    })
    await page.waitForSelector('.quiet')
    await waitUntil('it is announced', async () =>
      (await page.textContent('[role=status]'))?.includes('Nobody waits') ? true : undefined,
    )
    await page.context().close()
  }, 60_000)

  test('can be looked at again afterwards, by a link that somebody else opens', async () => {
    const opened = await visit(tokens.view)
    const { page } = opened
    const incident = await stageIncident(shop.url)
    await page.waitForSelector(`.blocking-list li[data-pid="${incident.pids.dashboard}"]`, {
      state: 'attached',
    })
    await incident.end()
    await page.waitForSelector('.quiet')
    // Back in time, a step at a time, until the incident is there again.
    await page.focus('.time-line input')
    await waitUntil('the incident is found in the history', async () => {
      await page.keyboard.press('ArrowLeft')
      const words = await page.getAttribute('.time-line input', 'aria-valuetext')
      return /1\d sessions wait/.test(words ?? '') ? true : undefined
    })
    await page.waitForSelector(`.blocking-list li[data-pid="${incident.pids.billing}"]`, {
      state: 'attached',
    })
    expect(await page.innerText('.time-line')).toContain('As it was at')
    const link = page.url()
    expect(link).toContain('at=')

    const other = await visit(tokens.view, link.slice(link.lastIndexOf('/') + 1))
    await other.page.waitForSelector(`.blocking-list li[data-pid="${incident.pids.billing}"]`, {
      state: 'attached',
    })
    // A picture of the past offers no action.
    await other.page.click(`.graph .card[data-pid="${incident.pids.billing}"]`)
    await other.page.waitForSelector('aside.panel')
    expect(await other.page.innerText('aside.panel')).not.toContain('End it')
    await other.page.goBack()
    await other.page.waitForSelector('aside.panel', { state: 'detached' })
    await other.page.click('text=Back to now')
    await other.page.waitForSelector('.quiet')
    await other.page.context().close()
    await page.context().close()
  })

  test('whoever may only look is offered nothing else', async () => {
    const incident = await stageIncident(shop.url)
    onTestFinished(() => incident.end())
    const { page } = await visit(tokens.view, `now?pid=${incident.pids['checkout-1']}`)
    await page.waitForSelector('aside.panel')
    const panel = await page.innerText('aside.panel')
    expect(panel).toContain('You may look and not end sessions')
    expect(await page.locator('aside.panel .button-danger').count()).toBe(0)
    await page.context().close()
  })
})

async function waiting(url: string, pid: number): Promise<boolean> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<{ blocked: boolean }>(
      'SELECT cardinality(pg_blocking_pids($1)) > 0 AS blocked',
      [pid],
    )
    return rows[0]?.blocked ?? false
  } finally {
    await client.end()
  }
}
