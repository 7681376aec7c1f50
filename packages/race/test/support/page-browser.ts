/** Pages in a Chromium: `HOLDFAST_CHROMIUM` names it, else the one of the operating system. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'

const program = [
  process.env['HOLDFAST_CHROMIUM'],
  '/usr/bin/chromium',
  '/usr/bin/google-chrome',
].find((path) => path !== undefined && existsSync(path))

export const hasBrowser: boolean = program !== undefined

interface Pages {
  browser(): Browser
  /** Where a page is written. */
  file(): string
  /** Opens a page; fails if it says or asks for anything. */
  open<T>(
    text: string,
    use: (page: Page) => Promise<T>,
    options?: BrowserContextOptions,
  ): Promise<T>
}

/** A browser for the tests around it. */
export function pages(): Pages {
  const folder = mkdtempSync(join(tmpdir(), 'race-page-'))
  const file = join(folder, 'report.html')
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
  return {
    browser: () => browser,
    file: () => file,
    async open(text, use, options = {}) {
      await using context = await browser.newContext(options)
      const page = await context.newPage()
      const said: string[] = []
      page.on('console', (message) => said.push(message.text()))
      page.on('pageerror', (error) => said.push(error.message))
      page.on('request', (request) => said.push(request.url()))
      writeFileSync(file, text)
      await page.goto(pathToFileURL(file).href)
      const result = await use(page)
      expect(said).toEqual([pathToFileURL(file).href])
      return result
    },
  }
}

/** Runs in the page: texts whose colour is too near to that of what is behind them (WCAG AA, 4.5). */
export const weakContrasts = `(() => {
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
