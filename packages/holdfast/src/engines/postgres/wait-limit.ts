import type { Row, Statement } from '../../core/driver.ts'

/**
 * A limit for a wait of many parts. lock_timeout starts anew at every lock, and one row can mean
 * several (the tuple's queue, then each transaction in it), so the sum is bounded by
 * statement_timeout. That one is armed when a statement arrives, so it has to be set by a
 * statement of its own, before.
 */

/**
 * How much later than lock_timeout our statement_timeout fires. So a single wait ends by
 * lock_timeout, whatever the statement itself took, and several end no later than this.
 */
const slackMs = 25

export interface LimitRequest {
  /** `undefined`: only the client's budget and the caller's own settings count. */
  readonly limitMs: number | undefined
  /** Milliseconds from BEGIN that the wait may not exceed. */
  readonly budgetMs: number | undefined
}

/** What was in force before, as the server wrote it, and what is now. */
export interface WaitLimit {
  readonly lockTimeout: string
  readonly statementTimeout: string
  /** The wait was given this long. */
  readonly limitMs: number
  /** The statement_timeout now in force is ours, not a shorter one of the caller. */
  readonly ours: boolean
}

const inMs = (setting: string): string =>
  `(extract(epoch FROM pg_catalog.current_setting('${setting}')::interval) * 1000)::int8`

/** Saves both timeouts and sets ours, for the rest of the transaction. */
export function limitWait({ limitMs, budgetMs }: LimitRequest): Statement {
  const marker = "pg_catalog.current_setting('holdfast.held', true)"
  const ours = `statement_ms NOT BETWEEN 1 AND limit_ms + ${slackMs}`
  const inherits = limitMs === undefined
  const lockTimeout = inherits
    ? 'CASE WHEN lock_ms BETWEEN 1 AND limit_ms THEN lock_timeout ELSE limit_ms::text END'
    : 'limit_ms::text'
  return {
    // OFFSET 0 has the settings read before they are set; the marker shows the next statement
    // that both ran in one transaction.
    text: `
SELECT lock_timeout AS "#lock", statement_timeout AS "#statement", limit_ms::text AS "#limit", ${ours} AS "#ours",
       pg_catalog.set_config('lock_timeout', ${lockTimeout}, true) AS "#newLock",
       pg_catalog.set_config('statement_timeout',
         CASE WHEN ${ours} THEN (limit_ms + ${slackMs})::text ELSE statement_timeout END, true) AS "#newStatement",
       pg_catalog.set_config('holdfast.held', coalesce(nullif(${marker}, ''), ','), true) AS "#held"
FROM (
  SELECT pg_catalog.current_setting('lock_timeout') AS lock_timeout,
         pg_catalog.current_setting('statement_timeout') AS statement_timeout,
         ${inMs('lock_timeout')} AS lock_ms, ${inMs('statement_timeout')} AS statement_ms,
         greatest(1, least($1::text::int8, $2::text::int8 - ${slackMs}
           - (extract(epoch FROM pg_catalog.clock_timestamp() - pg_catalog.now()) * 1000)::int8)) AS limit_ms
  OFFSET 0
) AS before`,
    values: [inherits ? null : String(limitMs), budgetMs === undefined ? null : String(budgetMs)],
  }
}

export function waitLimitFrom(rows: readonly Row[]): WaitLimit {
  const [row = {}] = rows
  return {
    lockTimeout: String(row['#lock']),
    statementTimeout: String(row['#statement']),
    limitMs: Number(row['#limit']),
    ours: row['#ours'] === true,
  }
}

/** Whether the transaction-local marker outlived its statement, which it does only in a transaction. */
export const isInTransaction: Statement = {
  text: `SELECT coalesce(pg_catalog.current_setting('holdfast.held', true), '') <> '' AS open`,
  values: [],
}

/**
 * The same for utility statements: SHOW and SET take no snapshot, so at REPEATABLE READ a LOCK
 * TABLE that follows still comes before the snapshot. SELECT set_config would freeze it.
 */
export const showLockTimeout: Statement = { text: 'SHOW lock_timeout', values: [] }
export const showStatementTimeout: Statement = { text: 'SHOW statement_timeout', values: [] }

/** Reads what SHOW answered. */
export function shown(rows: readonly Row[]): string {
  return String(Object.values(rows[0] ?? {})[0])
}

export function setLockTimeout(value: string): string {
  return `SET LOCAL lock_timeout = ${literal(value)}`
}

export function setStatementTimeout(value: string): string {
  return `SET LOCAL statement_timeout = ${literal(value)}`
}

const units: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** Limits for LOCK TABLE, given the settings as SHOW wrote them. */
export function utilityLimit(
  limitMs: number,
  budgetMs: number | undefined,
  lockTimeout: string,
  statementTimeout: string,
): WaitLimit {
  const limit = Math.max(1, Math.min(limitMs, (budgetMs ?? Infinity) - slackMs))
  const [, amount = '0', unit = 'ms'] = /^(\d+)(ms|s|min|h|d)?$/.exec(statementTimeout) ?? []
  const ownMs = Number(amount) * (units[unit] ?? 1)
  const ours = ownMs === 0 || ownMs > limit + slackMs
  return { lockTimeout, statementTimeout, limitMs: limit, ours }
}

/** statement_timeout for a limit of ours, as a setting. */
export function statementTimeoutFor(limit: WaitLimit): string {
  return limit.ours ? `${limit.limitMs + slackMs}ms` : limit.statementTimeout
}

/** Only settings as the server wrote them come here; quoted all the same. */
function literal(value: string): string {
  return `'${value.replaceAll("'", "''")}'`
}
