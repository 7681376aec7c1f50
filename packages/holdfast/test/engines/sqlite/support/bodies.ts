import { type HoldfastError, isHoldfastError } from '../../../../src/core/errors.ts'
import type { Handle } from './sqlite-clients.ts'

/** What a body may do, one after the other; whatever fails it passes over, but for `error`. */
const steps = [
  'insert',
  'insert',
  'insert',
  'prepared',
  'select',
  'unread',
  'wait',
  'savepoint',
  'rollback to',
  'release',
  'duplicate',
  'or rollback',
  'on conflict rollback',
  'raise rollback',
  'ddl',
  'begin',
  'commit',
  'rollback',
  'hidden commit',
  'error',
] as const
type Step = (typeof steps)[number]

const texts: Readonly<Partial<Record<Step, string>>> = {
  select: 'SELECT COUNT(*) FROM log',
  duplicate: 'INSERT INTO single VALUES (1)',
  'or rollback': 'INSERT OR ROLLBACK INTO single VALUES (1)',
  'on conflict rollback': 'INSERT INTO strict_single VALUES (1)',
  'raise rollback': 'INSERT INTO guarded VALUES (1)',
  ddl: 'CREATE TABLE IF NOT EXISTS made (id INT)',
  begin: 'BEGIN IMMEDIATE',
  commit: 'COMMIT',
  rollback: 'ROLLBACK',
  'hidden commit': 'SELECT 1; /* ; */ COMMIT; BEGIN IMMEDIATE',
}

/** Tables that bodies use. */
export const bodyTables: readonly string[] = [
  'CREATE TABLE log (run INT NOT NULL, n INT NOT NULL, PRIMARY KEY (run, n))',
  'CREATE TABLE single (id INTEGER PRIMARY KEY)',
  'INSERT INTO single VALUES (1)',
  'CREATE TABLE strict_single (id INTEGER PRIMARY KEY ON CONFLICT ROLLBACK)',
  'INSERT INTO strict_single VALUES (1)',
  'CREATE TABLE guarded (id INTEGER)',
  `CREATE TRIGGER refuses BEFORE INSERT ON guarded BEGIN SELECT RAISE(ROLLBACK, 'no'); END`,
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
  return Array.from({ length: count }, () => Array.from({ length: 1 + below(8) }, stepOf))
}

/** What a body was told it had written, and had not taken back itself. */
export interface Written {
  rows: number[]
}

/** Runs the steps of a body; what it wrote is noted as it is told. */
export async function runBody(
  body: readonly Step[],
  tx: Handle,
  run: number,
  written: Written,
): Promise<void> {
  written.rows = []
  let kept: readonly number[] | undefined
  const prepared = tx.prepare('INSERT INTO log VALUES (?, ?)')
  for (const [n, step] of body.entries()) {
    if (step === 'error') throw new Error('mine')
    if (step === 'wait') await new Promise(setImmediate)
    try {
      if (step === 'insert') tx.exec(`INSERT INTO log VALUES (${run}, ${n})`)
      else if (step === 'prepared') prepared.run(run, n)
      else if (step === 'unread') tx.prepare('SELECT * FROM log').iterate().next()
      else if (step === 'savepoint') tx.exec('SAVEPOINT mine')
      else if (step === 'rollback to') tx.exec('ROLLBACK TO mine')
      else if (step === 'release') tx.exec('RELEASE mine')
      else if (step !== 'wait') tx.exec(texts[step] ?? '')
      if (step === 'insert' || step === 'prepared') written.rows.push(n)
      if (step === 'savepoint') kept = [...written.rows]
      if (step === 'rollback to' && kept !== undefined) written.rows = [...kept]
    } catch {
      // A body that hears nothing.
    }
  }
}

/** What a caller was told: nothing if it was committed. */
export type Told = { readonly error: unknown } | undefined

/** Why what was told is not what is there, if it is not. */
export function lieIn(
  told: Told,
  written: Written,
  looking: Handle,
  run: number,
): string | undefined {
  const rows = looking.prepare('SELECT n FROM log WHERE run = ? ORDER BY n').all(run)
  const there = rows.map((row) => String((row as { n: unknown }).n)).join(' ')
  if (told === undefined) {
    const wanted = written.rows.join(' ')
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
