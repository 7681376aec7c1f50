/** R10: dead jobs by keyboard alone: found, looked at, tried again, deleted. */
import { waitUntil } from '@holdfast/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { AuditEntry } from '../../src/server/actions.ts'
import {
  chromiumProgram,
  type ConsoleBrowser,
  sizes,
  startBrowser,
} from '../support/console-browser.ts'
import { logIn, settled } from '../support/console-visitor.ts'
import { openShop, type Shop } from '../support/shop-under-load.ts'
import { tokens } from '../support/started-console.ts'

describe.skipIf(chromiumProgram === undefined)('R10: dead jobs', () => {
  let browser: ConsoleBrowser
  let shop: Shop
  const audit: AuditEntry[] = []
  beforeAll(async () => {
    shop = await openShop({ audit: (entry) => void audit.push(entry) })
    browser = await startBrowser()
  })
  afterAll(async () => {
    await browser.close()
    await shop.end()
  })

  test('are reached, read, tried again and deleted without a mouse', async () => {
    const visit = await browser.open({ viewport: sizes.desktop })
    const { page, complaints } = visit
    await logIn(visit, shop.origin, tokens.operate)
    complaints.length = 0
    await page.keyboard.press('g')
    await page.keyboard.press('j')
    await page.waitForSelector('h1:has-text("Dead jobs")')
    await settled(visit)
    const rows = page.locator('table tbody tr')
    expect(await rows.count()).toBe(3)
    await visit.screenshot('dead-jobs')

    const act = async (verb: string): Promise<void> => {
      await rows.first().locator('th a').focus()
      await page.keyboard.press('Enter')
      await page.waitForSelector('pre:has-text("customer")')
      expect(await page.innerText('main')).toContain('the bucket is full')
      await page.getByRole('button', { name: `${verb}…` }).focus()
      await page.keyboard.press('Enter')
      await page.waitForSelector('dialog[open] button:focus')
      // The answer that changes nothing has the focus; the other is one step further.
      expect(await page.evaluate('document.activeElement.textContent')).toBe('Keep it')
      await visit.screenshot(`dead-jobs-${verb.split(' ')[0]?.toLowerCase()}`)
      expect(await visit.violations()).toEqual([])
      await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
      await page.waitForSelector('dialog', { state: 'detached' })
    }
    await act('Retry the job')
    await waitUntil('it has left the list', async () => (await rows.count()) === 2 || undefined)
    await act('Delete the job')
    await waitUntil('so has this one', async () => (await rows.count()) === 1 || undefined)
    expect(audit.map(({ action, result }) => [action, result])).toEqual([
      ['job-retry', 'asked'],
      ['job-retry', 'done'],
      ['job-delete', 'asked'],
      ['job-delete', 'done'],
    ])
    // Escape closes what is open, as everywhere.
    await rows.first().locator('th a').focus()
    await page.keyboard.press('Enter')
    await page.waitForSelector('pre:has-text("customer")')
    await page.keyboard.press('Escape')
    await page.waitForSelector('pre:has-text("customer")', { state: 'detached' })
    expect(complaints).toEqual([])
    await page.context().close()
  })

  test('who may only look is told who can do something', async () => {
    const visit = await browser.open({ viewport: sizes.phone })
    await logIn(visit, shop.origin, tokens.view)
    await visit.page.goto(`${shop.origin}/jobs`)
    await settled(visit)
    await visit.page.locator('table tbody tr th a').first().click()
    await visit.page.waitForSelector('code:has-text("holdfast jobs retry")')
    expect(await visit.page.getByRole('button', { name: /Retry|Delete/ }).count()).toBe(0)
    await visit.screenshot('dead-jobs-phone')
    await visit.page.context().close()
  })
})
