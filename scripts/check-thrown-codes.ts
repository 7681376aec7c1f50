/** Fails unless every code of the error table was raised by the tests; reads what they recorded. */
import { readFileSync } from 'node:fs'
import { errorCodes } from '../packages/holdfast/src/errors.ts'

const [file] = process.argv.slice(2)
if (file === undefined) throw new Error('usage: node scripts/check-thrown-codes.ts <file>')
const thrown = new Set(readFileSync(file, 'utf8').split('\n'))
const missing = Object.keys(errorCodes).filter((code) => !thrown.has(code))
if (missing.length > 0) {
  console.error(`no test raised these codes on a real server: ${missing.join(', ')}`)
  process.exit(1)
}
console.log(`all ${Object.keys(errorCodes).length} error codes were raised by tests`)
