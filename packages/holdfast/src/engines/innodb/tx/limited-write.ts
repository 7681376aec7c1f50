import type { Row, Statement, Transaction } from '../../../core/driver.ts'
import type { ServerFacts } from '../server.ts'

/** Of a whole session, in seconds, for what MySQL cannot limit otherwise. */
const waitLimit = {
  read: { text: 'SELECT @@SESSION.innodb_lock_wait_timeout AS seconds', values: [] },
  set: (seconds: number): string =>
    `SET SESSION innodb_lock_wait_timeout = ${Math.max(1, Math.trunc(seconds))}`,
} as const

/**
 * A write that may wait, no longer than this. On MariaDB the statement says so itself; MySQL limits nothing but a SELECT
 * by the statement, so that it is up to a second more, and a setting of the session is put back.
 */
export async function limitedWrite<Tx>(
  transaction: Transaction<Tx>,
  statement: Statement,
  limitMs: number | undefined,
  dialect: ServerFacts['dialect'],
): Promise<readonly Row[]> {
  if (dialect === 'mariadb' || limitMs === undefined) return await transaction.query(statement)
  const [was] = await transaction.query(waitLimit.read)
  await transaction.command(waitLimit.set(Math.ceil(limitMs / 1_000)))
  try {
    return await transaction.query(statement)
  } finally {
    await transaction.command(waitLimit.set(Number(was?.['seconds']))).catch(() => undefined)
  }
}
