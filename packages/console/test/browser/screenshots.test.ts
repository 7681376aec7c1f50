/** The pictures of docs/who-blocks-whom.md: `npm run docs:screenshots` makes them again. */
import { mkdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { expect, test } from 'vitest'
import { stageIncident } from '../../../holdfast/test/support/staged-incident.ts'
import { sizes, startBrowser } from '../support/console-browser.ts'
import { logIn, settled } from '../support/console-visitor.ts'
import { openShop } from '../support/shop-under-load.ts'
import { tokens } from '../support/started-console.ts'

const folder = process.env['HOLDFAST_SCREENSHOTS']

test.skipIf(folder === undefined)(
  'the pictures of the runbook',
  async () => {
    const target = resolve(folder as string)
    mkdirSync(target, { recursive: true })
    const shop = await openShop()
    const browser = await startBrowser()
    const visit = await browser.open({ viewport: { width: 1400, height: 1060 } })
    const { page } = visit
    const shoot = async (name: string, path: string): Promise<void> => {
      await page.goto(`${shop.origin}/${path}`)
      await settled(visit)
      await page.screenshot({ path: `${target}/${name}.png` })
    }
    await pretendAnHour(shop.url)
    await logIn(visit, shop.origin, tokens.operate)
    await page.waitForSelector('.quiet')
    await page.setViewportSize({ width: 1400, height: 520 })
    await shoot('quiet', 'now')
    await page.setViewportSize({ width: 1400, height: 1060 })
    const incident = await stageIncident(shop.url)
    // Long enough to look like what somebody is called for.
    await waitUntil(
      'it has lasted for a while',
      () => (performance.now() - incident.happenedAt > 20_000 ? true : undefined),
      { limitMs: 60_000 },
    )
    await shoot('now', 'now')
    const part = async (name: string, path: string, selector: string): Promise<void> => {
      await page.goto(`${shop.origin}/${path}`)
      await settled(visit)
      await page.waitForSelector(selector)
      // The frame of what has the focus belongs to whoever uses it.
      await page.evaluate('document.activeElement.blur()')
      await page.locator(selector).screenshot({ path: `${target}/${name}.png` })
    }
    await part('session', `now?pid=${incident.pids.billing}`, 'aside.panel')
    await part('lock', 'now?lock=cart:7', 'aside.panel')
    await page.goto(`${shop.origin}/now?pid=${incident.pids.billing}`)
    await page.click('text=End the session…')
    await page.locator('dialog').screenshot({ path: `${target}/confirm.png` })
    await page.emulateMedia({ colorScheme: 'dark' })
    await page.setViewportSize(sizes.phone)
    await shoot('phone', 'now')
    await incident.end()
    await page.setViewportSize({ width: 1400, height: 930 })
    await page.emulateMedia({ colorScheme: 'light' })
    await shoot('locks', 'locks?namespace=order')
    expect(visit.complaints.filter((text) => !text.includes('401'))).toEqual([])
    await browser.close()
    await shop.end()
  },
  180_000,
)

/** An hour of use that nobody wants to wait for: quiet, and busy in the last ten minutes. */
async function pretendAnHour(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`
    INSERT INTO holdfast.lock_minute
      (bucket, minute, namespace, acquired, timeouts, busy, wait, wait_max_ms, hold, hold_max_ms)
    SELECT 0, date_trunc('minute', now()) - n * interval '1 min', space,
      (700 + 200 * sin(n / 6.0)) * calls, CASE WHEN n < 10 AND space = 'order' THEN 12 - n ELSE 0 END, n % 4,
      CASE WHEN n < 10
        THEN ARRAY[300, 120, 90, 60, 50, 40, 30, 25, 20, 12, 8, 4, 1, 0]
        ELSE ARRAY[600, 60, 20, 8, 6, 3, 2, 1, 0, 0, 0, 0, 0, 0] END::bigint[], 9000,
      ARRAY[200, 300, 150, 60, 20, 6, 4, 2, 1, 0, 0, 0, 0, 0]::bigint[], 700
    FROM generate_series(1, 59) AS n, (VALUES ('order', 1), ('cart', 2)) AS spaces (space, calls)`)
  await client.end()
}
