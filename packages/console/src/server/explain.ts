import { channel } from 'node:diagnostics_channel'
import { isHoldfastError } from 'holdfast/errors'
import { Refusal, type RefusalCode } from '../core/refusals.ts'

const failures = channel('holdfast:console.failed')

const known: Readonly<Record<string, RefusalCode>> = {
  OBSERVE_TIMEOUT: 'DATABASE_SLOW',
  OBSERVE_NO_SUCH_SESSION: 'NO_SUCH_SESSION',
  OBSERVE_TRANSACTION_OVER: 'TRANSACTION_OVER',
  OBSERVE_NO_SUCH_SCHEDULE: 'NO_SUCH_SCHEDULE',
  SCHEMA_MISSING: 'SCHEMA_MISSING',
  OPTION_INVALID: 'BAD_REQUEST',
  ENGINE_NOT_OFFERED: 'NOT_OFFERED',
  OBSERVE_NOT_SHOWN: 'LOCKS_NOT_SHOWN',
}

/** What is missing: a right of PostgreSQL, of MariaDB, of MySQL. */
const rights: Readonly<Record<string, RefusalCode>> = {
  pg_read_all_stats: 'STATS_RIGHT_MISSING',
  PROCESS: 'PROCESS_RIGHT_MISSING',
  'CONNECTION ADMIN': 'KILL_RIGHT_MISSING',
  CONNECTION_ADMIN: 'KILL_RIGHT_MISSING',
}

/** What a request is told about an error: a text of the table, and of the database its SQLSTATE. */
export function explain(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  if (failures.hasSubscribers) failures.publish({ error })
  if (isHoldfastError(error, 'OBSERVE_RIGHT_MISSING')) {
    return new Refusal(rights[String(error.details['right'])] ?? 'SIGNAL_RIGHT_MISSING')
  }
  const code = isHoldfastError(error) ? known[error.code] : undefined
  if (code !== undefined) return new Refusal(code)
  const sqlState =
    sqlStateOf(error) ?? sqlStateOf((error as { readonly cause?: unknown } | undefined)?.cause)
  // Of a table of ours that is not there.
  if (sqlState === '42P01' || sqlState === '3F000')
    return new Refusal('SCHEMA_MISSING', { sqlState })
  if (sqlState === '57014') return new Refusal('DATABASE_SLOW', { sqlState })
  if (sqlState !== undefined) return new Refusal('DATABASE_FAILED', { sqlState })
  return new Refusal(isHoldfastError(error) || isSocketError(error) ? 'DATABASE_FAILED' : 'FAILED')
}

function sqlStateOf(error: unknown): string | undefined {
  // Clients of MariaDB and MySQL keep it beside a code of their own.
  const { code, sqlState } = (error ?? {}) as {
    readonly code?: unknown
    readonly sqlState?: unknown
  }
  return [sqlState, code].find(
    (state): state is string => typeof state === 'string' && /^[0-9A-Z]{5}$/.test(state),
  )
}

/** Refused, reset, unknown host; some have no code, such as that of a pool that waited in vain. */
function isSocketError(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown }
  if (typeof code === 'string' && /^E[A-Z]+$/.test(code)) return true
  return typeof message === 'string' && /timeout|terminated|connect/i.test(message)
}
