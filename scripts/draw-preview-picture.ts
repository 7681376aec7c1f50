/** Draws `preview.svg` as the picture that others show beside a link. Run: npm run docs:preview-picture */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'

const path = (name: string): string => fileURLToPath(new URL(`../website/${name}`, import.meta.url))
const browser = await chromium.launch({
  executablePath: process.env['HOLDFAST_CHROMIUM'] ?? '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu'],
})
const page = await browser.newPage({ viewport: { width: 1200, height: 630 } })
await page.setContent(`<body style="margin:0">${readFileSync(path('preview.svg'), 'utf8')}</body>`)
await page.screenshot({ path: path('public/preview.png') })
await browser.close()
