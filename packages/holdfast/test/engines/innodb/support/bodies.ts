import type { HoldfastError } from '../../../../src/core/errors.ts'
import { isHoldfastError } from '../../../../src/core/errors.ts'
import type { InnodbSession } from '../../../server-behaviour/innodb/support/innodb-session.ts'
import type { Handle } from './innodb-clients.ts'

/** What a body may do, one after the other; whatever fails it passes over, but for `error`. */
const steps = [
  'insert',
  'insert',
  'insert',
  'select',
  'savepoint',
  'rollback to',
  'duplicate',
  'deadlock',
  'ddl',
  'begin',
  'commit',
  'rollback',
  'call',
  'error',
] as const
type Step = (typeof steps)[number]

const texts: Readonly<Partial<Record<Step, string>>> = {
  select: 'SELECT COUNT(*) FROM log',
  duplicate: 'INSERT INTO single VALUES (1)',
  ddl: 'CREATE TABLE IF NOT EXISTS made (id INT)',
  begin: 'BEGIN',
  commit: 'COMMIT',
  rollback: 'ROLLBACK',
  call: 'CALL ends()',
}

/** Tables and the procedure that bodies use. */
export const bodyTables: readonly string[] = [
  'CREATE TABLE log (run INT NOT NULL, attempt INT NOT NULL, n INT NOT NULL, PRIMARY KEY (run, attempt, n)) ENGINE=InnoDB',
  'CREATE TABLE pair (id INT PRIMARY KEY, v INT NOT NULL) ENGINE=InnoDB',
  'INSERT INTO pair VALUES (1, 0), (2, 0)',
  'CREATE TABLE single (id INT PRIMARY KEY) ENGINE=InnoDB',
  'INSERT INTO single VALUES (1)',
  'CREATE TABLE heavy (id INT PRIMARY KEY) ENGINE=InnoDB',
  'CREATE PROCEDURE ends() COMMIT',
]

/** The same bodies for the same seed. */
export function bodiesOf(seed: number, count: number): readonly (readonly Step[])[] {
  let state = seed
  const below = (most: number): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % most
  }
  const stepOf = (): Step => steps[below(steps.length)] as Step
  return Array.from({ length: count }, () => Array.from({ length: 1 + below(7) }, stepOf))
}

/** What the last attempt of a body was told it had written, and had not taken back itself. */
export interface Written {
  attempt: number
  rows: number[]
}

/** Runs the steps of a body; what it wrote is noted as it is told. */
export async function runBody(
  body: readonly Step[],
  tx: Handle,
  other: InnodbSession,
  run: number,
  written: Written,
): Promise<void> {
  written.rows = []
  let kept: readonly number[] | undefined
  for (const [n, step] of body.entries()) {
    if (step === 'error') throw new Error('mine')
    try {
      if (step === 'insert') {
        await tx.query(`INSERT INTO log VALUES (${run}, ${written.attempt}, ${n})`)
        written.rows.push(n)
      } else if (step === 'savepoint') {
        await tx.query('SAVEPOINT mine')
        kept = [...written.rows]
      } else if (step === 'rollback to') {
        await tx.query('ROLLBACK TO SAVEPOINT mine')
        if (kept !== undefined) written.rows = [...kept]
      } else if (step === 'deadlock') await loses(tx, other)
      else await tx.query(texts[step] ?? '')
    } catch {
      // A body that hears nothing.
    }
  }
}

/** The body dies, because the other one has changed more rows; whoever asks first. */
async function loses(tx: Handle, other: InnodbSession): Promise<void> {
  const many = Array.from({ length: 40 }, (_, at) => `(${at})`).join(', ')
  await other.all('BEGIN', `INSERT INTO heavy VALUES ${many}`, 'UPDATE pair SET v = 1 WHERE id = 1')
  try {
    await tx.query('UPDATE pair SET v = 2 WHERE id = 2')
    await Promise.allSettled([
      other.rows('UPDATE pair SET v = 1 WHERE id = 2'),
      tx.query('UPDATE pair SET v = 2 WHERE id = 1'),
    ])
  } finally {
    await other.rows('ROLLBACK')
  }
}

/** What a caller was told: nothing if it was committed. */
export type Told = { readonly error: unknown } | undefined

/** Why what was told is not what is there, if it is not. */
export async function lieIn(
  told: Told,
  written: Written,
  session: InnodbSession,
  run: number,
): Promise<string | undefined> {
  const rows = await session.rows(
    `SELECT attempt, n FROM log WHERE run = ${run} ORDER BY attempt, n`,
  )
  const there = rows.map(({ attempt, n }) => `${String(attempt)}/${String(n)}`).join(' ')
  if (told === undefined) {
    const wanted = written.rows.map((n) => `${written.attempt}/${n}`).join(' ')
    return there === wanted ? undefined : `told committed: ${wanted}; there is: ${there}`
  }
  if (there === '' || saysSo(told.error)) return undefined
  return `told that nothing is saved (${String(told.error)}); there is: ${there}`
}

/** That a part may be saved, or that nobody knows. */
function saysSo(error: unknown): boolean {
  if (!isHoldfastError(error)) return false
  const { code, details } = error as HoldfastError
  return code === 'COMMIT_UNKNOWN' || (code === 'TX_ENDED_INSIDE' && details['ended'] !== 'refused')
}
