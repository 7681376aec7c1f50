/** Fails unless every code of the error table was raised by the tests; reads what they recorded. */
import { readFileSync } from 'node:fs'
import { innodbBinaries, innodbServersOfRun } from '../testkit/src/servers/innodb-binaries.ts'
import { errorCodes } from '../packages/holdfast/src/errors.ts'

/** Raised by a server that is not on every machine, and that most runs leave alone where it is. */
const needsMysql = new Set(['OBSERVE_NOT_SHOWN'])

const [file] = process.argv.slice(2)
if (file === undefined) throw new Error('usage: node scripts/check-thrown-codes.ts <file>')
const thrown = new Set(readFileSync(file, 'utf8').split('\n'))
const hasMysql = innodbServersOfRun.includes('mysql-9') && innodbBinaries('mysql-9') !== undefined
const missing = Object.keys(errorCodes).filter((code) => !thrown.has(code))
const due = missing.filter((code) => hasMysql || !needsMysql.has(code))
if (due.length > 0) {
  console.error(`no test raised these codes on a real server: ${due.join(', ')}`)
  process.exit(1)
}
console.log(
  `all ${Object.keys(errorCodes).length - missing.length} error codes were raised by tests`,
)
if (missing.length > 0)
  console.log(`not raised, because this run has no MySQL: ${missing.join(', ')}`)
