/** One exploration at a time: in this process, and in one database. */
import { setTimeout } from 'node:timers/promises'
import type { Control } from './control.ts'

let last: Promise<void> = Promise.resolve()

/**
 * Waits until nobody else in this process explores. Pools that flows share tell whose a statement is to one exploration
 * only, and two at once would keep each other waiting.
 */
export async function takeTurn(): Promise<Disposable> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const before = last
  last = before.then(() => promise)
  await before
  return { [Symbol.dispose]: resolve }
}

/** `race` in ASCII, and a number of its own. */
const key = [0x72616365, 1] as const
const waitMs = 30_000

/**
 * Takes the database for one exploration: the rows of another would be taken for those of the flows. The lock ends with
 * the control's session.
 */
export async function takeDatabase(control: Control, limitMs: number = waitMs): Promise<void> {
  const deadline = performance.now() + limitMs
  for (;;) {
    const [row] = await control.query(
      'SELECT pg_catalog.pg_try_advisory_lock($1, $2) AS taken',
      key,
    )
    if (row?.['taken'] === true) return
    if (performance.now() > deadline) break
    await setTimeout(50)
  }
  const holders = await control.query(
    `SELECT l.pid FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_database d ON d.oid = l.database
     WHERE l.locktype = 'advisory' AND l.granted AND d.datname = pg_catalog.current_database()
       AND l.classid::int8 = $1 AND l.objid::int8 = $2`,
    key,
  )
  const who = await control.describe(holders.map((row) => Number(row['pid'])))
  throw new Error(
    `Another exploration has had this database for more than ${limitMs / 1000} s: ${who}. Give each test file a database of its own, or use state: 'clone'`,
  )
}
