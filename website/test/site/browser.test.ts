/** The built site in a Chromium: nothing asks elsewhere, nothing that axe finds, at two sizes in both schemes. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type ConsoleBrowser,
  chromiumProgram,
  sizes,
  startBrowser,
} from '../../../packages/console/test/support/console-browser.ts'
import { dist } from '../support/built-site.ts'
import { serveSite } from '../support/serve-site.ts'

const pages = {
  landing: '/',
  recipe: '/docs/recipes/wallet',
  reference: '/docs/errors',
  api: '/api/holdfast/locks',
} as const

const clients = ['pg', 'postgres.js', 'Prisma', 'Drizzle', 'Kysely', 'TypeORM']

describe.skipIf(chromiumProgram === undefined)('the site', () => {
  let browser: ConsoleBrowser
  let site: Awaited<ReturnType<typeof serveSite>>
  beforeAll(async () => {
    ;[browser, site] = await Promise.all([startBrowser(), serveSite(dist)])
  })
  afterAll(async () => {
    await browser.close()
    await site[Symbol.asyncDispose]()
  })

  const looks = Object.entries(pages).flatMap(([name, path]) =>
    (['desktop', 'phone'] as const).flatMap((size) =>
      (['light', 'dark'] as const).map((scheme) => [name, size, scheme, path] as const),
    ),
  )

  test.each(looks)('%s, %s, %s', async (name, size, scheme, path) => {
    const { page, complaints, violations, screenshot } = await browser.open({
      viewport: sizes[size],
      colorScheme: scheme,
      reducedMotion: 'reduce',
    })
    const elsewhere: string[] = []
    page.on('request', (request) => {
      const url = request.url()
      if (!url.startsWith(`${site.origin}/`) && !url.startsWith('data:')) elsewhere.push(url)
    })
    await page.goto(site.origin + path, { waitUntil: 'networkidle' })
    await screenshot(`site-${name}-${size}-${scheme}`)
    expect(elsewhere).toEqual([])
    expect(complaints).toEqual([])
    expect(await violations()).toEqual([])
    const overflow = await page.evaluate(
      'document.documentElement.scrollWidth - document.documentElement.clientWidth',
    )
    expect(overflow).toBe(0)
    await page.context().close()
  })

  test('the race can be stepped through with the keyboard alone', async () => {
    const { page } = await browser.open({ viewport: sizes.desktop })
    await page.goto(site.origin, { waitUntil: 'networkidle' })
    const stepper = page.getByRole('region', { name: 'The race, step by step' })
    await stepper.getByRole('button', { name: 'Next' }).focus()
    for (let step = 1; step < 8; step += 1) await page.keyboard.press('Enter')
    expect(await stepper.innerText()).toContain('101 of 100 files stored.')
    await page.keyboard.press('Enter')
    await page.keyboard.press('End')
    expect(await stepper.innerText()).toContain('100 of 100 files stored.')
    await page.keyboard.press('ArrowLeft')
    expect(await stepper.innerText()).toContain('7 / 8')
    await page.context().close()
  })

  test('the code of a client is a tab away', async () => {
    const { page } = await browser.open({ viewport: sizes.desktop })
    await page.goto(site.origin, { waitUntil: 'networkidle' })
    const tabs = page.locator('.vp-code-group').first()
    expect(await tabs.locator('label').allInnerTexts()).toEqual(clients)
    await tabs.getByLabel('pg', { exact: true }).focus()
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('ArrowRight')
    expect(await tabs.locator('.active').innerText()).toContain('fromPrisma')
    await page.context().close()
  })

  test('a client that was chosen is chosen everywhere, and on the next page', async () => {
    const { page } = await browser.open({ viewport: sizes.desktop })
    await page.goto(site.origin, { waitUntil: 'networkidle' })
    await page.locator('.vp-code-group label', { hasText: 'Kysely' }).first().click()
    await page.getByRole('link', { name: 'Overspent' }).click()
    await page.getByRole('heading', { level: 1, name: 'Spend from a wallet' }).waitFor()
    // The tables come first, for Prisma and in SQL.
    const tabs = page.locator('.vp-code-group', { hasText: 'fromKysely' }).first()
    await tabs.locator('.active', { hasText: 'fromKysely' }).waitFor()
    expect(await tabs.getByLabel('Kysely').isChecked()).toBe(true)
    await page.reload({ waitUntil: 'networkidle' })
    await tabs.locator('.active', { hasText: 'fromKysely' }).waitFor()
    await page.context().close()
  })

  test('each card of what broke leads to its recipe', async () => {
    const { page } = await browser.open({ viewport: sizes.desktop })
    await page.goto(site.origin, { waitUntil: 'networkidle' })
    for (const [card, heading] of [
      ['Overspent', 'Spend from a wallet'],
      ['Oversold', 'Sell the last piece'],
      ['Double-booked', 'Book a desk or a seat'],
      ['Ran twice', 'Run a cron job once'],
      ['Charged twice', 'Receive a webhook'],
      ['Stuck', 'A lock that nobody releases'],
    ] as const) {
      await page.getByRole('link', { name: card }).click()
      const title = page.getByRole('heading', { level: 1, name: heading })
      await title.waitFor()
      expect(await title.isVisible()).toBe(true)
      await page.goBack()
    }
    await page.context().close()
  })

  test('somebody who types an error code is led to it', async () => {
    const { page } = await browser.open({ viewport: sizes.desktop })
    await page.goto(site.origin, { waitUntil: 'networkidle' })
    await page.keyboard.press('Control+k')
    await page.getByRole('searchbox').fill('LOCK_TIMEOUT')
    await page.locator('.VPLocalSearchBox .result').first().waitFor()
    await page.keyboard.press('Enter')
    await page.waitForURL('**/docs/errors#lock_timeout')
    expect(page.url()).toContain('#lock_timeout')
    await page.context().close()
  })
})
