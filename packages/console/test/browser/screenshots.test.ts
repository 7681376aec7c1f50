/** The pictures of docs/who-blocks-whom.md: `npm run docs:screenshots` makes them again, in a quarter of an hour. */
import { execFile } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { expect, test } from 'vitest'
import { stageIncident } from '../../../holdfast/test/support/staged-incident.ts'
import { useLocks } from '../support/busy-locks.ts'
import { sizes, startBrowser } from '../support/console-browser.ts'
import { logIn, settled } from '../support/console-visitor.ts'
import { openShop } from '../support/shop-under-load.ts'
import { tokens } from '../support/started-console.ts'

/** The charts have a point for each minute, and all of them are recorded. */
const minutesOfUse = 10
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
    process.stdout.write(`${await inText(shop.url, incident.pids.billing)}\n`)
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
    await useLocks(shop.url, minutesOfUse)
    await shoot('locks', 'locks?namespace=order&minutes=15')
    expect(visit.complaints.filter((text) => !text.includes('401'))).toEqual([])
    await browser.close()
    await shop.end()
  },
  180_000 + minutesOfUse * 60_000,
)

/** What the page shows of the same incident as text: its processes have the numbers of the pictures. */
async function inText(url: string, root: number): Promise<string> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const { rows } = await client.query<Record<string, unknown>>(
    `SELECT pid, locktype, relation::regclass::text, transactionid, classid, objid, mode, granted
     FROM pg_locks WHERE database IS NULL
       OR database = (SELECT oid FROM pg_database WHERE datname = current_database())
     ORDER BY pid`,
  )
  await client.end()
  const waiting = rows.filter(({ granted }) => granted === false)
  const command = fileURLToPath(new URL('../../../cli/src/main.ts', import.meta.url))
  const fromSource = new URL('../../../holdfast/test/support/from-source.ts', import.meta.url).href
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--import', fromSource, command, 'cancel', String(root), '--terminate'],
    { env: { ...process.env, DATABASE_URL: url } },
  ).catch((error: unknown) => error as { readonly stdout: string })
  const lines = waiting.map((row) => Object.values(row).slice(0, -1).join(' | '))
  return [`${rows.length} rows, of which wait:`, ...lines, stdout].join('\n')
}
