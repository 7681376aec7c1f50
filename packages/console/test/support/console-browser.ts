import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import axe from 'axe-core'
import {
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core'

/** Where there is a Chromium: `HOLDFAST_CHROMIUM` names it, else the one of the operating system. */
export const chromiumProgram: string | undefined = [
  process.env['HOLDFAST_CHROMIUM'],
  '/usr/bin/chromium',
  '/usr/bin/google-chrome',
].find((path) => path !== undefined && existsSync(path))

/** Screenshots of tests, for people to look at. */
const screenshotFolder: string = join(tmpdir(), 'holdfast-console-screenshots')

export const sizes = {
  phone: { width: 390, height: 844 },
  desktop: { width: 1440, height: 900 },
} as const

/** A page that is listened to. */
export interface WatchedPage {
  readonly page: Page
  /** Whatever it complained about: console, exceptions, failed requests, the content security policy. */
  readonly complaints: string[]
  /** Violations of WCAG at level A or AA, as `rule: element`. */
  violations(): Promise<string[]>
  screenshot(name: string): Promise<void>
}

export interface ConsoleBrowser {
  open(options?: BrowserContextOptions): Promise<WatchedPage>
  close(): Promise<void>
}

/** A Chromium with a profile of its own, which is gone afterwards. */
export async function startBrowser(): Promise<ConsoleBrowser> {
  mkdirSync(screenshotFolder, { recursive: true })
  const profile = mkdtempSync(join(tmpdir(), 'holdfast-chromium-'))
  const browser = await chromium.launch({
    executablePath: chromiumProgram as string,
    env: { ...process.env, HOME: profile, XDG_CONFIG_HOME: profile, XDG_CACHE_HOME: profile },
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
  return {
    open: async (options = {}) => watch(await browser.newContext(options)),
    async close() {
      await browser.close()
      rmSync(profile, { recursive: true, force: true })
    },
  }
}

async function watch(context: BrowserContext): Promise<WatchedPage> {
  const page = await context.newPage()
  page.setDefaultTimeout(10_000)
  const complaints: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(`exception: ${error.message}`))
  page.on('dialog', (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  await page.exposeFunction('complainAbout', (what: string) => complaints.push(what))
  await page.addInitScript({
    content: `addEventListener('securitypolicyviolation', (event) =>
      complainAbout('policy: ' + event.violatedDirective + ' ' + event.blockedURI))`,
  })
  const session = await context.newCDPSession(page)
  return {
    page,
    complaints,
    async violations() {
      // Through the debugger: the page's own policy lets no such script in, and stays in force.
      const run = async (expression: string): Promise<unknown> => {
        const { result, exceptionDetails } = await session.send('Runtime.evaluate', {
          expression,
          awaitPromise: true,
          returnByValue: true,
        })
        if (exceptionDetails)
          throw new Error(exceptionDetails.exception?.description ?? 'axe failed')
        return result.value
      }
      if (!(await run(`typeof axe === 'object'`))) await run(axe.source)
      const found = await run(`axe.run(document, {
        runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'],
        resultTypes: ['violations'],
      }).then(({ violations }) => violations.flatMap(({ id, nodes }) =>
        nodes.map(({ target, failureSummary }) => id + ': ' + target.join(' ') + ' | ' + failureSummary)))`)
      return found as string[]
    },
    async screenshot(name) {
      await page.screenshot({ path: join(screenshotFolder, `${name}.png`) })
    },
  }
}
