/** Names, keys, statements and errors that would run as script if anything made HTML of them. */
import { deferred, waitUntilBlocked } from '@holdfast/testkit'
import { createHoldfast, lockKey } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  chromiumProgram,
  type ConsoleBrowser,
  sizes,
  startBrowser,
} from '../support/console-browser.ts'
import { logIn, settled } from '../support/console-visitor.ts'
import { openShop, type Shop } from '../support/shop-under-load.ts'
import { tokens } from '../support/started-console.ts'

const attacks = [
  '<img src=x onerror=globalThis.ran=1>',
  '"><script>globalThis.ran=1</script>',
  'javascript:globalThis.ran=1',
  "' onfocus='globalThis.ran=1' autofocus='",
  '</title><svg onload=globalThis.ran=1>',
  '\u202eevil\u0007',
] as const
const [image, , script] = attacks

/** What would have to be there if any of it had become more than text. */
const traces = `({
  ran: globalThis.ran,
  elements: document.querySelectorAll('img, iframe, script:not([src]), svg[onload], [onerror], [onfocus]').length,
  links: [...document.querySelectorAll('[href]')].map((link) => link.getAttribute('href'))
    .filter((href) => !/^(#main$|\\/|\\.\\/assets)/.test(href)),
})`

describe.skipIf(chromiumProgram === undefined)('hostile texts', () => {
  let browser: ConsoleBrowser
  let shop: Shop
  let holder: pg.Pool
  let waiter: pg.Pool
  let pid = 0
  const done = deferred<void>()
  let playing: Promise<unknown>[] = []
  beforeAll(async () => {
    shop = await openShop()
    browser = await startBrowser()
    const pool = (application: string): pg.Pool =>
      new pg.Pool({ connectionString: shop.url, max: 1, application_name: application })
    holder = pool(image)
    waiter = pool(attacks[1])
    const held = deferred<void>()
    const hf = createHoldfast(fromPg(holder), { locks: { annotate: false, watch: false } })
    await sow(hf)
    const { rows } = await waiter.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    pid = rows[0]?.pid as number
    playing = [
      hf.guard([lockKey('cart', image), lockKey('cart', script)], async (tx) => {
        await tx.query(`SELECT 1 /* ${image} */`)
        held.resolve()
        await done.promise
      }),
    ]
    await held.promise
    const other = createHoldfast(fromPg(waiter), { locks: { watch: false, waitMs: 600_000 } })
    playing.push(other.guard(lockKey('cart', image), async () => undefined))
    await waitUntilBlocked(holderLook(), pid)
  })
  afterAll(async () => {
    done.resolve()
    await Promise.all(playing)
    await Promise.all([holder.end(), waiter.end(), look?.end()])
    await browser.close()
    await shop.end()
  })

  let look: pg.Pool | undefined
  const holderLook = (): pg.Pool => (look ??= new pg.Pool({ connectionString: shop.url, max: 1 }))

  test('are shown as they are, on every page, and run nowhere', async () => {
    const visit = await browser.open({ viewport: sizes.desktop })
    const { page } = visit
    await logIn(visit, shop.origin, tokens.operate)
    visit.complaints.length = 0
    const key = encodeURIComponent(image)
    const lock = encodeURIComponent(lockKey('cart', image).name)
    const shown: readonly (readonly [string, string])[] = [
      ['now?view=list', image],
      ['now?view=graph', image.slice(0, 12)],
      [`now?pid=${pid}`, image],
      [`now?lock=${lock}`, image],
      ['locks', image],
      ['ledger', 'credits'],
      [`ledger?book=credits&key=${key}`, image],
      ['claims', image],
      ['schedules', image],
      [`now?lock=${encodeURIComponent(script)}`, script],
    ]
    for (const [path, text] of shown) {
      await page.goto(`${shop.origin}/${path}`)
      await settled(visit)
      await page.waitForSelector(`main :text(${JSON.stringify(text)})`, { state: 'attached' })
      const { complaints } = visit
      expect({ path, found: await page.evaluate(traces), complaints }).toEqual({
        path,
        found: { elements: 0, links: [] },
        complaints: [],
      })
    }
    await visit.screenshot('hostile')
    // What is copied and confirmed is text as well.
    await page.goto(`${shop.origin}/schedules`)
    await page.click('button:has-text("Pause")')
    await page.waitForSelector('dialog[open]')
    expect(await page.evaluate(traces)).toEqual({ elements: 0, links: [] })
    expect(visit.complaints).toEqual([])
    await page.context().close()
  })

  test('would be stopped by the policy if they did become HTML, and we would hear of it', async () => {
    const visit = await browser.open()
    await logIn(visit, shop.origin, tokens.view)
    visit.complaints.length = 0
    const attempts = [
      `document.body.innerHTML = '<img src=x>'`,
      `document.createElement('img').setAttribute('onerror', 'globalThis.ran = 1')`,
      `document.body.append(Object.assign(document.createElement('script'), { text: 'globalThis.ran = 1' }))`,
    ]
    for (const attempt of attempts) {
      await expect(visit.page.evaluate(attempt)).rejects.toThrow(/Trusted(HTML|Script)/)
    }
    await visit.page.evaluate(`document.body.setAttribute('style', 'color: red')`)
    await expect
      .poll(() => visit.complaints.filter((text) => text.startsWith('policy: style-src')))
      .toHaveLength(1)
    expect(await visit.page.evaluate('globalThis.ran')).toBeUndefined()
    await visit.page.context().close()
  })
})

/** Hostile texts wherever a user of the library can put one. */
async function sow(hf: ReturnType<typeof createHoldfast<pg.PoolClient>>): Promise<void> {
  const credits = hf.credits({ name: 'credits' })
  await credits.grant(image, 100, { operationId: image })
  for (const attack of attacks) {
    if (attack.includes('\u0007')) continue
    await credits.spend(image, 1, { operationId: attack })
  }
  await credits.hold(image, 5, { operationId: `hold ${image}`, ttl: '10 min' })
  await hf.leases.acquire(image, { ttl: '10 min', note: attacks[1] })
  await hf
    .schedule({
      name: image,
      cron: '0 3 * * *',
      timeZone: 'UTC',
      guarantee: 'transactional',
      handler: async () => {
        throw new Error(attacks[1])
      },
    })
    .runNow()
    .catch(() => undefined)
  await hf.work<object>({ queue: image }).enqueue({ payload: {} })
  await using _recording = await hf.observe.record({ every: '1 s' })
  for (const attack of attacks) {
    if (!attack.includes('\u0007')) await hf.guard(lockKey('cart', attack), async () => undefined)
  }
}
