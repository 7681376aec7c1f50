/** The page of a hunt in a browser. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { inTurn } from '@holdfast/testkit'
import axe from 'axe-core'
import { describe, expect, test } from 'vitest'
import { htmlHunt } from '../../src/hunt/report/page/hunt-page.ts'
import { allVerdicts, huntOf, nothingProven, pairOf } from '../support/hunts.ts'
import { hasBrowser, pages, weakContrasts } from '../support/page-browser.ts'

/** Pictures for the docs, if they are asked for. */
const pictures = process.env['HOLDFAST_SCREENSHOTS']
const names = Array.from({ length: 25 }, (_, at) => `POST /a-rather-long-endpoint/${at}/:n/things`)
const wide = huntOf(
  names.flatMap((one, at) => names.slice(at).map((other) => pairOf([one, other], 'refuted'))),
)

describe.skipIf(!hasBrowser)('in a browser', () => {
  const { open } = pages()

  test('a cell leads to its race, and the timeline unfolds', async () => {
    await open(htmlHunt(allVerdicts), async (page) => {
      const picture = page.locator('#pair-1 svg.large')
      expect(await picture.isVisible()).toBe(false)
      await page.click('.matrix a[href="#pair-1"]')
      expect(await picture.isVisible()).toBe(true)
      expect(await page.locator('#pair-2 svg.large').isVisible()).toBe(false)
      await page.click('.matrix a[href="#pair-5"]')
      expect(await page.locator('#pair-5').isVisible()).toBe(true)
      await page.click('#pair-1 svg.large a[data-step="2"]')
      expect(await page.locator('#pair-1-step-2 pre').first().isVisible()).toBe(true)
    })
  })

  test('without scripts all of it can be unfolded', async () => {
    await open(
      htmlHunt(allVerdicts),
      async (page) => {
        await page.click('#pair-1 .timeline > summary')
        expect(await page.locator('#pair-1 svg.large').isVisible()).toBe(true)
      },
      { javaScriptEnabled: false },
    )
  })

  describe.each(inTurn(['light', 'dark'] as const, [390, 1200]))('%s', (colorScheme, widths) => {
    test.each(widths)('at %i: it can be read, fits, and axe finds nothing', async (width) => {
      for (const [name, report] of Object.entries({ allVerdicts, nothingProven, wide })) {
        await open(
          htmlHunt(report),
          async (page) => {
            await page.evaluate(
              `document.querySelectorAll('details').forEach((one) => { one.open = true })`,
            )
            expect(await page.evaluate(weakContrasts)).toEqual([])
            expect(
              await page.evaluate('document.documentElement.scrollWidth - innerWidth'),
            ).toBeLessThanOrEqual(0)
            await page.evaluate(axe.source)
            const found = await page.evaluate(
              `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
                violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => id + ' ' + target)))`,
            )
            expect(found).toEqual([])
            if (pictures !== undefined) {
              mkdirSync(pictures, { recursive: true })
              await page.screenshot({
                path: join(pictures, `hunt-${name}-${colorScheme}-${width}.png`),
              })
            }
          },
          { colorScheme, viewport: { width, height: 900 } },
        )
      }
    })
  })
})
