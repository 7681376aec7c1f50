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
}

/** What a request is told about an error: a text of the table, and of the database its SQLSTATE. */
export function explain(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  if (failures.hasSubscribers) failures.publish({ error })
  if (isHoldfastError(error, 'OBSERVE_RIGHT_MISSING')) {
    const sees = error.details['right'] !== 'pg_read_all_stats'
    return new Refusal(sees ? 'SIGNAL_RIGHT_MISSING' : 'STATS_RIGHT_MISSING')
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
  const { code } = (error ?? {}) as { readonly code?: unknown }
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}

/** Refused, reset, unknown host; pg has no code for a pool that waited in vain. */
function isSocketError(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown }
  if (typeof code === 'string' && /^E[A-Z]+$/.test(code)) return true
  return typeof message === 'string' && /timeout|terminated|connect/i.test(message)
}
