/** Every page, on a busy database with an incident, in both sizes and both themes. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type StagedIncident,
  stageIncident,
} from '../../../holdfast/test/support/staged-incident.ts'
import {
  chromiumProgram,
  type ConsoleBrowser,
  sizes,
  startBrowser,
} from '../support/console-browser.ts'
import { logIn, settled, wider } from '../support/console-visitor.ts'
import { openShop, type Shop } from '../support/shop-under-load.ts'
import { bearer, tokens } from '../support/started-console.ts'

/** Ids of the dead jobs, as the page is told them. */
async function deadJobs({ origin }: Shop): Promise<string[]> {
  const response = await fetch(`${origin}/api/jobs`, bearer(tokens.view))
  const { jobs } = (await response.json()) as { jobs: { id: string }[] }
  return jobs.map(({ id }) => id)
}

describe.skipIf(chromiumProgram === undefined)('every page', () => {
  let browser: ConsoleBrowser
  let shop: Shop
  let incident: StagedIncident
  beforeAll(async () => {
    shop = await openShop()
    incident = await stageIncident(shop.url)
    browser = await startBrowser()
  })
  afterAll(async () => {
    await browser.close()
    await incident.end()
    await shop.end()
  })

  test.each(['phone', 'desktop'] as const)(
    'is sound on a %s, in both themes',
    async (size) => {
      const visit = await browser.open({ viewport: sizes[size] })
      const { page, complaints } = visit
      /** What is wrong with what is seen now. */
      const faults = async (name: string): Promise<string[]> => {
        const found: string[] = []
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme })
          await visit.screenshot(`${name}-${size}-${colorScheme}`)
          found.push(...(await visit.violations()))
        }
        const over = await wider(visit)
        if (over > 0) found.push(`wider than the window by ${over}`)
        // Until somebody is in, an answer is an error.
        return [...found, ...complaints.splice(0).filter((text) => !text.includes('401'))]
      }
      await page.goto(`${shop.origin}/login`)
      await page.waitForSelector('input[name=token]')
      expect({ login: await faults('login') }).toEqual({ login: [] })
      await logIn(visit, shop.origin, tokens.operate)

      const root = incident.pids.billing
      const [job] = await deadJobs(shop)
      const pages = {
        now: 'now',
        'now-other': size === 'phone' ? 'now?view=graph' : 'now?view=list',
        session: `now?pid=${root}`,
        lock: 'now?lock=cart:7',
        locks: 'locks',
        ledger: 'ledger',
        keys: 'ledger?book=credits',
        account: 'ledger?book=credits&key=anna',
        claims: 'claims',
        jobs: 'jobs',
        job: `jobs?job=${job}`,
        schedules: 'schedules',
        doctor: 'doctor',
      }
      for (const [name, path] of Object.entries(pages)) {
        await page.goto(`${shop.origin}/${path}`)
        await settled(visit)
        expect({ [name]: await faults(name) }).toEqual({ [name]: [] })
      }
      await page.context().close()
    },
    90_000,
  )

  test('fits a window of 360', async () => {
    const visit = await browser.open({ viewport: { width: 360, height: 740 } })
    await logIn(visit, shop.origin, tokens.view)
    for (const path of [
      'now',
      'locks',
      'ledger?book=credits',
      'ledger?book=credits&key=anna',
      'claims',
      'jobs',
      'doctor',
    ]) {
      await visit.page.goto(`${shop.origin}/${path}`)
      await settled(visit)
      expect({ [path]: await wider(visit) }).toEqual({ [path]: 0 })
    }
    await visit.page.context().close()
  })
})
