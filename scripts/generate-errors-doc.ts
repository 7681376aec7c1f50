/**
 * Writes docs/errors.md, and the table of statuses in docs/http.md, from the table in core/error-codes.ts. `--check`
 * compares instead, for CI.
 * Run: node scripts/generate-errors-doc.ts [--check]
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { errorsPage } from './errors-page.ts'
import { withStatusTable } from './http-status-table.ts'

const pages: readonly [name: string, make: (old: string) => string][] = [
  ['errors.md', errorsPage],
  ['http.md', withStatusTable],
]
for (const [name, make] of pages) {
  const file = new URL(`../docs/${name}`, import.meta.url)
  const old = readFileSync(file, 'utf8')
  const page = make(old)
  if (!process.argv.includes('--check')) {
    writeFileSync(file, page)
  } else if (old !== page) {
    console.error(`docs/${name} is not what the table says: run npm run docs:errors`)
    process.exitCode = 1
  }
}
