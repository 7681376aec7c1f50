/** `node scripts/failed-files.ts <results> <most>`: the files with a test that failed; none if they are more than `most`. */
import { readFileSync } from 'node:fs'

interface Results {
  readonly testResults: readonly { readonly name: string; readonly status: string }[]
}

const [, , path = '', most = '0'] = process.argv
const { testResults } = JSON.parse(readFileSync(path, 'utf8')) as Results
const failed = new Set(
  testResults.filter(({ status }) => status === 'failed').map(({ name }) => name),
)
if (failed.size <= Number(most)) for (const name of failed) process.stdout.write(`${name}\n`)
