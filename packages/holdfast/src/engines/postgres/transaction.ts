import type { Isolation, Statement } from '../../core/driver.ts'

/** Opens a transaction; the server's default isolation level unless one is named. */
export function beginText(isolation: Isolation | undefined): string {
  return isolation === undefined ? 'BEGIN' : `BEGIN ISOLATION LEVEL ${isolation.toUpperCase()}`
}

export const commitText = 'COMMIT'
/** Leaves an empty transaction behind, for a client that will send its own COMMIT in any case. */
export const commitAndChainText = 'COMMIT AND CHAIN'
export const rollbackText = 'ROLLBACK'

/** PostgreSQL answers COMMIT of an aborted block with this tag and no error. */
export const rolledBackTag = 'ROLLBACK'

/** Fails with 25P02 in an aborted block; for clients that do not show COMMIT's command tag. */
export const probe: Statement = { text: 'SELECT true AS usable', values: [] }

/**
 * The backend that serves this transaction, also behind a pooler, and when it began. Together they
 * name one transaction: a backend is reused, its start is not.
 */
export const whichTransaction: Statement = {
  text: `SELECT pg_catalog.pg_backend_pid() AS pid,
    extract(epoch FROM pg_catalog.now())::text AS began`,
  values: [],
}

/**
 * Cancels what a backend is running, but only for as long as it serves that one transaction. A
 * role may do this to its own sessions.
 */
export function cancelTransaction(pid: number, began: string): Statement {
  return {
    text: `SELECT pg_catalog.pg_cancel_backend(pid) AS cancelled
    FROM pg_catalog.pg_stat_activity
    WHERE pid = $1::text::int4 AND extract(epoch FROM xact_start)::text = $2::text`,
    values: [String(pid), began],
  }
}

/**
 * Commits something that changes nothing, so that it waits until the standby has it and everything before
 * it, where there is a synchronous one. What was committed by somebody whose own wait was cancelled, or
 * cut short by a crash, can be seen and yet be lost: it is certain after this.
 */
export const waitForStandby: Statement = {
  text: `SELECT pg_catalog.pg_logical_emit_message(true, 'holdfast', '')::text AS lsn`,
  values: [],
  columns: ['lsn'],
}
