/** One process that writes to a file where others do, and may be killed meanwhile: `node sqlite-member.ts <file>`. */
import { DatabaseSync } from 'node:sqlite'
import { fromNodeSqlite } from '../../../packages/holdfast/src/drivers/node-sqlite.ts'
import { createHoldfast } from '../../../packages/holdfast/src/sqlite.ts'
import { randomFor } from '../../harness/random.ts'
import type { FromMember, ToMember } from './sqlite-crew.ts'
import { sqliteJobs } from './sqlite-jobs.ts'

const [path = ''] = process.argv.slice(2)
const open = (): DatabaseSync => new DatabaseSync(path)
const hf = createHoldfast(fromNodeSqlite(open), { wait: '60 s', tx: { retry: { budget: '60 s' } } })
/** For what is done without the library. */
const db = open()
// Long enough for a write of its own, as one would set it.
db.exec('PRAGMA busy_timeout = 10000')

process.on('disconnect', () => process.exit(0))
process.on('message', ({ job, about, seed, times }: ToMember) => {
  const refused: string[] = []
  const random = randomFor(seed, process.pid)
  sqliteJobs[job]({ hf, db, about, random, times, refused }).then(
    (answers) => process.send?.({ answers, refused } satisfies FromMember),
    (error: unknown) =>
      process.send?.({ answers: [], refused, trouble: String(error) } satisfies FromMember),
  )
})
process.send?.('ready')
