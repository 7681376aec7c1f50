/**
 * The page in a browser. Runs where there is a Chromium: `HOLDFAST_CHROMIUM` names it, else the one
 * of the operating system.
 */
import { writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { ends } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import { htmlReport } from '../../src/report/page/html-report.ts'
import { hasBrowser, pages, weakContrasts } from '../support/page-browser.ts'
import * as made from '../support/reports.ts'

describe.skipIf(!hasBrowser)('in a browser', () => {
  const { open, browser, file } = pages()

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

  test.each(ends([320, 390, 700, 1000, 1400]))('fits a window of %i', async (width) => {
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
    await using context = await browser().newContext()
    const page = await context.newPage()
    writeFileSync(file(), broken)
    await page.goto(pathToFileURL(file()).href)
    expect(await page.title()).toBe('upload within the quota: race')
  })
})
