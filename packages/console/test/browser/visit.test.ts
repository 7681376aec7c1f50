/** Getting in, losing the server, finding one's way. */
import { waitUntil } from '@holdfast/testkit'
import { fromPg } from 'holdfast/drivers/pg'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { listen } from '../../src/node/listen.ts'
import type { ConsoleOptions } from '../../src/server/console-options.ts'
import { assembleConsole, type ConsoleInside } from '../../src/server/create-console.ts'
import {
  chromiumProgram,
  type ConsoleBrowser,
  sizes,
  startBrowser,
  type WatchedPage,
} from '../support/console-browser.ts'
import { logIn, settled } from '../support/console-visitor.ts'
import { openShop, type Shop } from '../support/shop-under-load.ts'
import { auth, tokens } from '../support/started-console.ts'

describe.skipIf(chromiumProgram === undefined)('a visitor', () => {
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

  async function visit(): Promise<WatchedPage> {
    const opened = await browser.open({ viewport: sizes.desktop })
    onTestFinished(() => opened.page.context().close())
    return opened
  }

  /** Another console on the same database. */
  async function another(
    options: Partial<ConsoleOptions>,
    inside: Partial<ConsoleInside> = {},
  ): Promise<string> {
    const pool = new pg.Pool({ connectionString: shop.url, max: 2, application_name: 'console' })
    const made = assembleConsole({ driver: fromPg(pool), ...options }, inside)
    const { port, close } = await listen(made, { port: 0, host: '127.0.0.1' })
    onTestFinished(async () => {
      await close()
      await pool.end()
    })
    return `http://127.0.0.1:${port}`
  }

  test('is told that a token is wrong, and gets in with the right one to where the link leads', async () => {
    const { page, violations } = await visit()
    await page.goto(`${shop.origin}/ledger?book=credits&key=anna`)
    await page.fill('input[name=token]', 'wrong')
    await page.press('input[name=token]', 'Enter')
    await page.waitForSelector('[role=alert]')
    expect(await page.innerText('[role=alert]')).toContain('TOKEN_WRONG')
    expect(await violations()).toEqual([])
    await page.fill('input[name=token]', tokens.view)
    await page.press('input[name=token]', 'Enter')
    await page.waitForSelector('.balance')
    expect(await page.innerText('.balance')).toContain('drift 0')
    await page.click('text=Log out')
    await page.waitForSelector('input[name=token]')
  })

  test('gets in by a link with a token, which is gone from the address at once', async () => {
    const { page } = await visit()
    await page.goto(`${shop.origin}/login#token=${tokens.view}`)
    await page.waitForSelector('nav[aria-label=Pages]')
    expect(page.url()).toBe(`${shop.origin}/now`)
    expect(await page.evaluate('history.length')).toBeLessThanOrEqual(3)
  })

  test('stands before a closed console and is told why', async () => {
    const origin = await another({})
    const { page } = await visit()
    await page.goto(`${origin}/now`)
    expect(await page.innerText('body')).toContain('This console is closed')
  })

  test('is told so too when it closes while they look', async () => {
    const opened = await visit()
    await logIn(opened, shop.origin, tokens.view)
    // As after a restart without its credentials.
    await opened.page.route('**/api/**', (route) =>
      route.fulfill({
        status: 503,
        json: { error: { code: 'CLOSED', message: 'It is closed.', next: 'Name credentials.' } },
      }),
    )
    await opened.page.reload()
    await opened.page.waitForSelector('h1:has-text("This console is closed")')
    expect(await opened.page.innerText('main')).toContain('Name credentials.')
    expect(await opened.violations()).toEqual([])
  })

  test('keeps what was seen when the server goes, marked as old, and is live again by itself', async () => {
    const opened = await visit()
    const { page } = opened
    await logIn(opened, shop.origin, tokens.view)
    await settled(opened)
    await shop.closeConsole()
    await page.waitForSelector('.banner')
    expect(await page.innerText('.banner')).toMatch(/Connection lost.*stale since \d\d:\d\d:\d\d/s)
    expect(await page.innerText('.top-bar .badge')).toBe('stale')
    expect(await page.locator('.quiet').count()).toBe(1)
    expect(await opened.violations()).toEqual([])
    await shop.openConsole()
    await page.waitForSelector('.banner', { state: 'detached', timeout: 20_000 })
    await settled(opened)
  })

  test('finds another way in when the session is over', async () => {
    let now = Date.now()
    const origin = await another(
      { auth },
      { now: () => now, streamTimes: { lifetimeMs: 500 } as ConsoleInside['streamTimes'] },
    )
    const opened = await visit()
    await logIn(opened, origin, tokens.view)
    now += 13 * 3_600_000
    await opened.page.waitForSelector('input[name=token]')
    expect(await opened.page.innerText('main')).toContain('SESSION_EXPIRED')
  })

  test('finds every page by keys, goes back, and can turn the keys off', async () => {
    const opened = await visit()
    const { page } = opened
    await logIn(opened, shop.origin, tokens.view)
    for (const [letter, title] of Object.entries({
      l: 'Locks',
      b: 'Ledger',
      c: 'Claims and leases',
      s: 'Schedules',
      d: 'Doctor',
      n: 'Now',
    })) {
      await page.keyboard.press('g')
      await page.keyboard.press(letter)
      await page.waitForSelector(`h1:text-is("${title}")`)
    }
    await page.goBack()
    await page.waitForSelector('h1:text-is("Doctor")')
    await page.goto(`${shop.origin}/ledger`)
    await page.fill('input[name=key]', '')
    await page.type('input[name=key]', 'gn?')
    expect(await page.inputValue('input[name=key]')).toBe('gn?')
    expect(page.url()).toContain('/ledger')
    await page.evaluate('document.activeElement.blur()')
    await page.keyboard.press('?')
    await page.waitForSelector('dialog[open]')
    expect(await opened.violations()).toEqual([])
    await page.uncheck('dialog input')
    await page.keyboard.press('Escape')
    await page.keyboard.press('g')
    await page.keyboard.press('n')
    expect(await page.innerText('h1')).toBe('Ledger')
  })

  test('chooses a theme, and finds it again', async () => {
    const opened = await visit()
    const { page } = opened
    await logIn(opened, shop.origin, tokens.view)
    const ground = (): Promise<unknown> =>
      page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
    const light = await ground()
    await page.click('button:has-text("Theme")')
    await page.click('button:has-text("Theme")')
    expect(await ground()).not.toBe(light)
    await page.reload()
    await settled(opened)
    expect(await ground()).not.toBe(light)
    expect(await page.innerText('button:has-text("Theme")')).toContain('dark')
  })

  test('reads charts by keyboard, and as a table', async () => {
    const opened = await visit()
    const { page } = opened
    await logIn(opened, shop.origin, tokens.view)
    await waitUntil('there is more than one page of movements', async () => {
      await page.goto(`${shop.origin}/ledger?book=credits&key=anna`)
      await settled(opened)
      return (await page.locator('a:has-text("Older")').count()) > 0 ? true : undefined
    })
    const slider = page.locator('.chart input[type=range]').first()
    await slider.focus()
    const words = async (): Promise<string | null> => await slider.getAttribute('aria-valuetext')
    const before = await words()
    expect(before).toMatch(/^\d\d:\d\d:\d\d: available [\d,]+$/)
    await page.keyboard.press('Home')
    await waitUntil('another value is read', async () =>
      (await words()) === before ? undefined : true,
    )
    await page.click('summary:has-text("As a table")')
    await page.locator('.chart-table tbody tr').nth(10).waitFor()
    await page.click('a:has-text("Older")')
    await page.waitForSelector('a:has-text("Latest")')
    expect(page.url()).toContain('before=')
  })

  test('is at home under any base', async () => {
    const origin = await another({ auth, base: '/ops/console' })
    const opened = await visit()
    const { page } = opened
    await logIn(opened, `${origin}/ops/console`, tokens.view)
    await page.waitForSelector('h1:text-is("Now")')
    await page.click('nav >> text=Locks')
    await page.waitForSelector('h1:text-is("Locks")')
    expect(page.url()).toBe(`${origin}/ops/console/locks`)
    await page.reload()
    await settled(opened)
    expect(opened.complaints.filter((text) => !text.includes('401'))).toEqual([])
  })

  test('who asked for less motion gets none', async () => {
    const opened = await browser.open({ reducedMotion: 'reduce' })
    onTestFinished(() => opened.page.context().close())
    await logIn(opened, shop.origin, tokens.view)
    const moving = await opened.page.evaluate(
      `[...document.querySelectorAll('*')].filter((element) => {
        const style = getComputedStyle(element)
        return parseFloat(style.transitionDuration) > 0 || style.animationName !== 'none'
      }).length`,
    )
    expect(moving).toBe(0)
  })
})
