/**
 * Writes docs/errors.md from the table in core/error-codes.ts. `--check` compares instead, for CI.
 * Run: node scripts/generate-errors-doc.ts [--check]
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { errorsPage } from './errors-page.ts'

const file = new URL('../docs/errors.md', import.meta.url)
const page = errorsPage()
if (process.argv.includes('--check')) {
  if (readFileSync(file, 'utf8') !== page) {
    console.error('docs/errors.md is not what the table says: run npm run docs:errors')
    process.exit(1)
  }
} else {
  writeFileSync(file, page)
}
