/**
 * The page in a browser. Runs where there is a Chromium: `HOLDFAST_CHROMIUM` names it, else the one
 * of the operating system.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { htmlReport } from '../../src/report/page/html-report.ts'
import * as made from '../support/reports.ts'

const program = [
  process.env['HOLDFAST_CHROMIUM'],
  '/usr/bin/chromium',
  '/usr/bin/google-chrome',
].find((path) => path !== undefined && existsSync(path))
const folder = mkdtempSync(join(tmpdir(), 'race-page-'))

describe.skipIf(program === undefined)('in a browser', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await chromium.launch({
      executablePath: program as string,
      args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-sync'],
    })
  })
  afterAll(async () => {
    await browser.close()
    rmSync(folder, { recursive: true })
  })

  /** Opens a report; fails if the page says or asks for anything. */
  async function open<T>(
    text: string,
    use: (page: Page) => Promise<T>,
    options: BrowserContextOptions = {},
  ): Promise<T> {
    await using context = await browser.newContext(options)
    const page = await context.newPage()
    const said: string[] = []
    page.on('console', (message) => said.push(message.text()))
    page.on('pageerror', (error) => said.push(error.message))
    page.on('request', (request) => said.push(request.url()))
    const file = join(folder, 'report.html')
    writeFileSync(file, text)
    await page.goto(pathToFileURL(file).href)
    const result = await use(page)
    expect(said).toEqual([pathToFileURL(file).href])
    return result
  }

  test('a reader can go through the run step by step', async () => {
    await open(htmlReport(made.quota), async (page) => {
      const faded = (): Promise<number> => page.locator('svg.large a.later').count()
      const place = page.locator('#place')
      expect(await faded()).toBe(0)
      expect(await place.textContent()).toBe('all 8 steps')
      await page.click('button[name=next]')
      await page.keyboard.press('ArrowRight')
      expect(await place.textContent()).toBe('after step 2 of 8')
      expect(await faded()).toBe(6)
      expect(await page.locator('.states:visible').textContent()).toContain('last read 99 at (2)')
      await page.keyboard.press('Escape')
      expect(await faded()).toBe(0)
    })
  })

  test('a step of the picture opens its whole statement', async () => {
    await open(htmlReport(made.quota), async (page) => {
      await page.click('svg.large a[data-step="2"]')
      expect(await page.locator('#step-2 details').getAttribute('open')).not.toBeNull()
      expect(await page.locator('#step-2 pre').isVisible()).toBe(true)
    })
  })

  test('without scripts everything is there, and nothing that does nothing', async () => {
    const options = { javaScriptEnabled: false }
    await open(
      htmlReport(made.quota),
      async (page) => {
        expect(await page.locator('svg.large').isVisible()).toBe(true)
        expect(await page.locator('#stepper').isVisible()).toBe(false)
        await page.click('#step-2 summary')
        expect(await page.locator('#step-2 pre').isVisible()).toBe(true)
      },
      options,
    )
  })

  test.each(['light', 'dark'] as const)('texts can be read: %s', async (colorScheme) => {
    await open(
      htmlReport(made.lostUpdate),
      async (page) => {
        const weak = await page.evaluate(weakContrasts)
        expect(weak).toEqual([])
      },
      { colorScheme },
    )
  })

  test.each([320, 390, 700, 1000, 1400])('fits a window of %i', async (width) => {
    for (const report of [made.lostUpdate, made.deadlock, made.oneStatement, made.greenReport()]) {
      await open(
        htmlReport(report),
        async (page) => {
          const over = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
          expect(over).toBeLessThanOrEqual(0)
        },
        { viewport: { width, height: 800 } },
      )
    }
  })

  test('a script that came in through the data would not run', async () => {
    // Escaping is tested elsewhere; this is the second wall.
    const broken = htmlReport(made.quota).replace(
      '<main>',
      '<main><script>document.title="in"</script>',
    )
    await using context = await browser.newContext()
    const page = await context.newPage()
    writeFileSync(join(folder, 'broken.html'), broken)
    await page.goto(pathToFileURL(join(folder, 'broken.html')).href)
    expect(await page.title()).toBe('upload within the quota: race')
  })
})

/** Runs in the page: texts whose colour is too near to that of what is behind them (WCAG AA, 4.5). */
const weakContrasts = `(() => {
  const parse = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number)
  const light = ([r, g, b]) =>
    [r, g, b]
      .map((one) => one / 255)
      .map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
      .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0)
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const [r, g, b, alpha = 1] = parse(getComputedStyle(at).backgroundColor)
      if (alpha > 0.99) return [r, g, b]
    }
    return [255, 255, 255]
  }
  const weak = []
  for (const element of document.querySelectorAll('main *')) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())
    const box = element.getBoundingClientRect()
    if (!own || box.width === 0 || element.closest('button:disabled')) continue
    const style = getComputedStyle(element)
    const inPicture = element.closest('svg') !== null
    const colour = parse(inPicture ? style.fill : style.color)
    const [one, other] = [light(colour), light(behind(element))].sort((a, b) => b - a)
    const contrast = (one + 0.05) / (other + 0.05)
    if (contrast < 4.5) weak.push([element.textContent.trim().slice(0, 30), contrast.toFixed(2)])
  }
  return weak
})()`
