import type { Row, Statement } from '../../../core/driver.ts'
import { quoteLiteral } from '../sql/identifier.ts'
import { filled, le, minus, ne, plus, times } from '../sql/operators.ts'
import type { EndedBy } from '../../../core/errors/error-details.ts'

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
export const slackMs = 25

/** By how much two clocks may be apart that measure the same wait. */
export const clockMs = 5

export interface LimitRequest {
  /** `undefined`: only the client's budget and the caller's own settings count. */
  readonly limitMs: number | undefined
  /** The caller's lock_timeout counts too, if it is shorter. */
  readonly yields: boolean
  /** Milliseconds from BEGIN that the wait may not exceed. */
  readonly budgetMs: number | undefined
}

/** What is in force now. */
export interface WaitLimit {
  /** The wait was given this long. */
  readonly limitMs: number
  readonly endedBy: EndedBy
  /** Of the backend that waits, where that was asked for. */
  readonly pid?: number
  /** What its transaction held, by its marker. */
  readonly held?: string
}

/** As good as none: PostgreSQL's timeouts are 32-bit. */
const longestMs = 2_147_483_647

/** A timeout as the server wrote it, in milliseconds; NULL, which `least` passes over, if there is none. */
export function settingMs(text: string): string {
  return `CASE WHEN ${text} ${ne} '0' THEN (extract(epoch FROM ${text}::interval) ${times} 1000)::pg_catalog.int8 END`
}

function sinceMs(moment: string): string {
  return `(extract(epoch FROM pg_catalog.clock_timestamp() ${minus} ${moment}) ${times} 1000)::pg_catalog.int8`
}

/** How long a wait in this statement may last to end before the caller's statement_timeout, if there is one. */
const endsWithStatement: string = `${settingMs("pg_catalog.current_setting('statement_timeout')")} ${minus} ${slackMs}
  ${minus} ${sinceMs('pg_catalog.statement_timestamp()')}`

/** The values that `shortestLimitMs` binds, in its order. */
export function limitNumbers({ limitMs, budgetMs }: LimitRequest): readonly string[] {
  const limit = limitMs === undefined ? [] : [String(limitMs)]
  return budgetMs === undefined ? limit : [...limit, String(budgetMs)]
}

/**
 * How many milliseconds a wait in this very statement may last from now: the shortest of the call's limit;
 * the client's own timer, from the start of the transaction by the server; the caller's lock_timeout, if
 * that counts; and its statement_timeout, so that the wait ends as one of ours and not as a cancelled
 * statement, which would look like somebody's cancel.
 */
export function shortestLimitMs(
  { limitMs, yields, budgetMs }: LimitRequest,
  placeholder: (at: number) => string,
  lockTimeout: string,
): string {
  const limits = [endsWithStatement]
  if (limitMs !== undefined) limits.push(placeholder(0))
  if (budgetMs !== undefined) {
    const at = limitMs === undefined ? 0 : 1
    limits.push(`${placeholder(at)} ${minus} ${sinceMs('pg_catalog.now()')}`)
  }
  if (yields) limits.push(settingMs(lockTimeout))
  return `greatest(1, least(${limits.join(', ')}, ${longestMs}))`
}

/** What is left of such a limit that was worked out at a moment before. */
export function leftOfLimit(limit: string, moment: string): string {
  return `greatest(1, ${limit} ${minus} ${sinceMs(moment)})`
}

/**
 * Saves both timeouts and sets ours, for the rest of the transaction or until `restoredTimeouts`. `moreMs` is how much
 * longer than one wait the whole statement may take; `each`: every lock is limited for itself, and the statement may take
 * its time.
 */
export function limitWait(
  { limitMs, yields, budgetMs }: LimitRequest,
  moreMs: number | 'each' = slackMs,
): Statement {
  const marker = "pg_catalog.current_setting('holdfast.held', true)"
  return {
    // OFFSET 0 has the settings read before they are set; the marker shows the next statement
    // that both ran in one transaction. A statement_timeout that is shorter than the limit stays.
    text: `
SELECT limit_ms::pg_catalog.text AS "#limit",
       CASE WHEN own_ms ${le} limit_ms THEN 'wait' WHEN client_ms ${le} limit_ms THEN 'client'
         WHEN lock_ms ${le} limit_ms THEN 'lock_timeout' ELSE 'statement_timeout' END AS "#by",
       pg_catalog.set_config('holdfast.saved', lock_timeout, true) AS "#savedLock",
       pg_catalog.set_config('holdfast.saved_statement', statement_timeout, true) AS "#savedStatement",
       pg_catalog.set_config('lock_timeout', limit_ms::pg_catalog.text, true) AS "#newLock",
       pg_catalog.set_config('statement_timeout', ${moreMs === 'each' ? 'statement_timeout' : `least(limit_ms ${plus} ${moreMs}, statement_ms ${plus} ${slackMs})::pg_catalog.text`}, true) AS "#newStatement",
       pg_catalog.set_config('holdfast.held', ${filled(marker, "','")}, true) AS "#held",
       pg_catalog.pg_backend_pid()::pg_catalog.text AS pid
FROM (
  SELECT *, greatest(1, least(own_ms, client_ms, lock_ms, statement_ms, ${longestMs - slackMs})) AS limit_ms
  FROM (
    SELECT lock_timeout, statement_timeout, $1::pg_catalog.text::pg_catalog.int8 AS own_ms,
           $2::pg_catalog.text::pg_catalog.int8 ${minus} ${slackMs} ${minus} ${sinceMs('pg_catalog.now()')} AS client_ms,
           ${yields ? settingMs('lock_timeout') : 'NULL::pg_catalog.int8'} AS lock_ms,
           ${settingMs('statement_timeout')} ${minus} ${slackMs} AS statement_ms
    FROM (
      SELECT pg_catalog.current_setting('lock_timeout') AS lock_timeout,
             pg_catalog.current_setting('statement_timeout') AS statement_timeout
      OFFSET 0
    ) AS before
    OFFSET 0
  ) AS limits
  OFFSET 0
) AS wait`,
    values: [
      limitMs === undefined ? null : String(limitMs),
      budgetMs === undefined ? null : String(budgetMs),
    ],
    name: `limit_${moreMs}${yields ? '_yielding' : ''}`,
  }
}

/** Whether `limitWait` came before, in the same transaction. */
export const isLimitedHere: string = `coalesce(pg_catalog.current_setting('holdfast.saved', true), '') ${ne} ''`

/** Both timeouts where they are asked for, in milliseconds; null if there is none. */
export const timeoutColumns: string = `${settingMs("pg_catalog.current_setting('lock_timeout')")}::pg_catalog.text AS lock_ms,
    ${settingMs("pg_catalog.current_setting('statement_timeout')")}::pg_catalog.text AS statement_ms`

/** The same in the transaction itself. */
export const ownTimeouts: Statement = { text: `SELECT ${timeoutColumns}`, values: [] }

/** By how much an error may come later than what it tells of. */
const lateMs = 150

/** Whether a wait of so long was ended by these settings, and by which. */
export function endedBySetting(waitedMs: number, row: Row | undefined): EndedBy | undefined {
  const reached = (ms: unknown): boolean =>
    typeof ms === 'string' &&
    waitedMs >= Number(ms) - slackMs - clockMs &&
    waitedMs <= Number(ms) + lateMs
  if (reached(row?.['statement_ms'])) return 'statement_timeout'
  return reached(row?.['lock_ms']) ? 'lock_timeout' : undefined
}

/** Puts both timeouts back, as columns of a statement. */
export const restoredTimeouts: readonly string[] = [
  ['lock_timeout', 'saved'],
  ['statement_timeout', 'saved_statement'],
].map(
  ([setting, saved]) =>
    `pg_catalog.set_config('${setting}', ${filled(`pg_catalog.current_setting('holdfast.${saved}', true)`, `pg_catalog.current_setting('${setting}')`)}, true)`,
)

/** The same as a statement of its own. */
export const restoreTimeouts: Statement = {
  text: `SELECT ${restoredTimeouts.map((column, at) => `${column} AS "#${at}"`).join(', ')}`,
  values: [],
}

export function waitLimitFrom(rows: readonly Row[]): WaitLimit {
  const [row = {}] = rows
  return {
    limitMs: Number(row['#limit']),
    endedBy: row['#by'] as EndedBy,
    pid: Number(row['pid']),
    held: String(row['#held']),
  }
}

/**
 * A limit by utility statements: SHOW and SET take no snapshot, so at REPEATABLE READ a LOCK
 * TABLE that follows still comes before the snapshot. SELECT set_config would freeze it.
 */
export const showIsolation: Statement = { text: 'SHOW transaction_isolation', values: [] }
export const showLockTimeout: Statement = { text: 'SHOW lock_timeout', values: [] }
export const showStatementTimeout: Statement = { text: 'SHOW statement_timeout', values: [] }

/** Reads what SHOW answered. */
export function shown(rows: readonly Row[]): string {
  return String(Object.values(rows[0] ?? {})[0])
}

function setLockTimeout(value: string): string {
  return `SET LOCAL lock_timeout = ${quoteLiteral(value)}`
}

function setStatementTimeout(value: string): string {
  return `SET LOCAL statement_timeout = ${quoteLiteral(value)}`
}

const units: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** What LOCK TABLE is limited to, given the settings as SHOW wrote them, and what to set for it. */
export function utilityLimit(
  { limitMs, yields, budgetMs }: LimitRequest,
  lockTimeout: string,
  statementTimeout: string,
): WaitLimit & { readonly set: readonly string[]; readonly restore: readonly string[] } {
  const limits: readonly (readonly [EndedBy, number | undefined])[] = [
    ['wait', limitMs],
    ['client', budgetMs === undefined ? undefined : budgetMs - slackMs],
    ['lock_timeout', yields ? shownMs(lockTimeout) : undefined],
    ['statement_timeout', less(shownMs(statementTimeout))],
  ]
  let shortest: WaitLimit = { limitMs: longestMs - slackMs, endedBy: 'statement_timeout' }
  for (const [endedBy, ms] of limits) {
    if (ms !== undefined && ms < shortest.limitMs) shortest = { limitMs: ms, endedBy }
  }
  const ms = Math.max(1, Math.ceil(shortest.limitMs))
  return {
    ...shortest,
    set: [setLockTimeout(`${ms}ms`), setStatementTimeout(`${ms + slackMs}ms`)],
    restore: [setLockTimeout(lockTimeout), setStatementTimeout(statementTimeout)],
  }
}

function less(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms - slackMs
}

/** A timeout as the server writes it; nothing if there is none. */
function shownMs(text: string): number | undefined {
  const [, amount = '0', unit = 'ms'] = /^(\d+)(ms|s|min|h|d)?$/.exec(text) ?? []
  return Number(amount) * (units[unit] ?? 1) || undefined
}
