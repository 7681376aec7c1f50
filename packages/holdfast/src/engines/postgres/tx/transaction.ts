import type { Isolation, Statement } from '../../../core/driver.ts'
import { eq, ne } from '../sql/operators.ts'
import { settingMs, slackMs } from './wait-limit.ts'

/** Opens a transaction; the server's default isolation level unless one is named. */
export function beginText(isolation: Isolation | undefined): string {
  return isolation === undefined ? 'BEGIN' : `BEGIN ISOLATION LEVEL ${isolation.toUpperCase()}`
}

/** Also where nobody checks types: it becomes a part of SQL. */
export const isolations: readonly Isolation[] = [
  'read committed',
  'repeatable read',
  'serializable',
]

export const commitText = 'COMMIT'
/** Leaves an empty transaction behind, for a client that will send its own COMMIT in any case. */
export const commitAndChainText = 'COMMIT AND CHAIN'
export const rollbackText = 'ROLLBACK'

/** PostgreSQL answers COMMIT of an aborted block with this tag and no error. */
export const rolledBackTag = 'ROLLBACK'

/**
 * Before COMMIT, for clients that do not show its command tag: fails with 25P02 in an aborted block and with
 * 25P01 outside of one.
 */
export const endProbe = 'SAVEPOINT holdfast_end'

/**
 * The same where the transaction began with our lock statement: its marker lasts as long as the transaction,
 * so another one that was begun in between has none.
 */
export const markerProbe: Statement = {
  text: `SELECT (coalesce(pg_catalog.current_setting('holdfast.held', true), '') ${ne} '')::pg_catalog.text AS usable`,
  values: [],
}

/**
 * The backend that serves this transaction, also behind a pooler, and when it began. Together they
 * name one transaction: a backend is reused, its start is not.
 */
export const whichTransaction: Statement = {
  text: `SELECT pg_catalog.pg_backend_pid()::pg_catalog.text AS pid,
    extract(epoch FROM pg_catalog.now())::pg_catalog.text AS began`,
  values: [],
}

/**
 * The same, and from now on no statement of this transaction runs for longer than what is left to its deadline, nor
 * longer than before. It ends with the transaction. Later by as much as our own waits end before a statement_timeout,
 * so that they end with the deadline.
 */
export function limitTransaction(leftMs: number): Statement {
  return {
    text: `${whichTransaction.text},
    pg_catalog.set_config('statement_timeout', least($1::pg_catalog.text::pg_catalog.int8,
      ${settingMs("pg_catalog.current_setting('statement_timeout')")})::pg_catalog.text, true) AS limited`,
    values: [String(leftMs + slackMs)],
    columns: ['pid', 'began', 'limited'],
    name: 'limit_transaction',
  }
}

/**
 * Cancels what a backend is running, but only for as long as it serves that one transaction. A
 * role may do this to its own sessions.
 */
export function cancelTransaction(pid: number, began: string): Statement {
  return {
    text: `SELECT pg_catalog.pg_cancel_backend(pid)::pg_catalog.text AS cancelled
    FROM pg_catalog.pg_stat_activity
    WHERE pid ${eq} $1::pg_catalog.text::pg_catalog.int4 AND extract(epoch FROM xact_start)::pg_catalog.text ${eq} $2::pg_catalog.text`,
    values: [String(pid), began],
  }
}

/**
 * Commits something that changes nothing, so that it waits until the standby has it and everything before
 * it, where there is a synchronous one. What was committed by somebody whose own wait was cancelled, or
 * cut short by a crash, can be seen and yet be lost: it is certain after this.
 */
export const waitForStandby: Statement = {
  text: `SELECT pg_catalog.pg_logical_emit_message(true, 'holdfast', '')::pg_catalog.text AS lsn`,
  values: [],
  columns: ['lsn'],
}
