import type { WatchedPage } from './console-browser.ts'

/** Logs in as a person does. */
export async function logIn({ page }: WatchedPage, origin: string, token: string): Promise<void> {
  await page.goto(`${origin}/login`)
  await page.fill('input[name=token]', token)
  await page.press('input[name=token]', 'Enter')
  await page.waitForSelector('nav[aria-label=Pages]')
}

/** The page is there with its data, and says nothing of trouble. */
export async function settled({ page }: WatchedPage): Promise<void> {
  await page.waitForSelector('main h1')
  await page.waitForSelector('.top-bar .badge:has-text("live")')
  await page.waitForSelector('.loading', { state: 'detached' })
}

/** By how much something is wider than the window. */
export async function wider({ page }: WatchedPage): Promise<number> {
  return Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'))
}
