import { hash } from 'node:crypto'
import type { Statement } from '../../../core/driver.ts'
import type { LockKey, LockMode, WantedLock } from '../../../core/locks/wanted-lock.ts'
import type { LockAnswer, LockRefusal, LockTerms, LockToken } from '../../../locks/engine.ts'
import { parameter } from '../sql/parameter.ts'
import { leftOfLimit, limitNumbers, shortestLimitMs } from '../tx/wait-limit.ts'
import { bitAnd, bitOr, cat, eq, filled, ne, shifted } from '../sql/operators.ts'

/**
 * One statement takes any number of advisory locks. Everything else it does rides along in the
 * same round trip. PostgreSQL evaluates the branches of CASE in order and the arguments of a
 * function from left to right, so their order is the order of events (pinned by the
 * server-behaviour suite):
 *
 *   1. note what was held before
 *   2. refuse where the lock would be worthless: a standby, a snapshot from before the wait
 *   3. try the lock, which does not overtake those who wait; if it is taken, save lock_timeout as
 *      the string the server gave, set ours, wait, restore. What has to be worked out for that from the
 *      transaction's own settings makes the text twice as dear to plan, so a `brief` one leaves it out:
 *      where there are such settings it does not wait, and is asked again in full
 *   4. add the lock to the marker `holdfast.held`, show its name in pg_stat_activity
 *
 * The marker, the timeout and application_name are transaction-local and undone by ROLLBACK TO
 * SAVEPOINT exactly as the locks are, so the marker is an honest record of what is held. The answer
 * is one text column, `before|result[|busy]`: columns cost more than characters.
 */

/** The part of it that PostgreSQL knows. */
export interface LockedKey {
  readonly key: Pick<LockKey, 'lock'>
  readonly mode: LockMode
}

export interface LockRequest extends LockTerms {
  readonly wanted: readonly WantedLock[]
  /**
   * The transaction begins with this statement, so nothing was held or named before, and its settings are
   * those of the connection.
   */
  readonly first: boolean
  /** Without the limits that have to be worked out. If nothing is granted, ask again without this. */
  readonly brief: boolean
}

/** Separates the caller's application_name from the lock's name. */
export const labelMark = ' hf:'

/** What this transaction holds, as the lock statement wrote it down. */
export const marker = "pg_catalog.current_setting('holdfast.held', true)"
/** The same as a part of an answer: somebody may have written into it what means something there. */
const heldBefore = `pg_catalog.translate(coalesce(${marker}, ''), '|#', '')`
/** Evaluates to NULL, which concat_ws leaves out: for what is done for its effect only. */
const silently = (call: string): string => `CASE WHEN ${call} IS NULL THEN '' END`

/** What `lockStatement` returns. */
const columns = ['answer', 'pid'] as const

interface NamedText {
  readonly name: string
  readonly text: string
}

/**
 * One text per combination of options, a few dozen at most: building one costs more than sending
 * it. The options as bits are the key.
 */
const texts: NamedText[] = []

function named(request: LockRequest, kind: 'one' | 'many', mode: LockMode): NamedText {
  const bits =
    (kind === 'one' ? 1 : 0) |
    (mode === 'shared' ? 2 : 0) |
    (request.attempt ? 4 : 0) |
    (request.limitMs === undefined ? 0 : 8) |
    (request.budgetMs === undefined ? 0 : 16) |
    (request.label === undefined ? 0 : 32) |
    (request.allowStaleSnapshot ? 64 : 0) |
    (request.first ? 128 : 0) |
    (request.yields ? 256 : 0) |
    (request.brief ? 512 : 0)
  return (texts[bits] ??= withName(
    kind === 'one' ? oneLockText(request, mode) : manyLocksText(request),
  ))
}

/** By its content, so that two releases never mean different things by one name. */
function withName(text: string): NamedText {
  return { name: `lock_${hash('sha256', text).slice(0, 12)}`, text }
}

function scopesOf({ wanted }: LockRequest): readonly string[] {
  return wanted.map(({ key }) => key.scope)
}

/** The statement that takes the locks of a request. */
export function lockStatement(request: LockRequest): Statement {
  const [only] = request.wanted
  return request.wanted.length === 1 && only?.key.lock.kind === 'bigint'
    ? oneLock(request, only.key.lock.id, only.mode)
    : manyLocks({ ...request, brief: false })
}

function oneLock(request: LockRequest, id: bigint, mode: LockMode): Statement {
  const values = [String(id), `${tokenLetter(mode)}${id},`, ...limitValues(request)]
  if (request.label !== undefined) values.push(labelMark + request.label)
  const scopes = scopesOf(request)
  const statement = { ...named(request, 'one', mode), values, columns, scopes }
  return request.first ? { ...statement, unprepared: shortLock(request, id, mode) } : statement
}

const shortColumns = ['held', 'standby', 'level', 'pid'] as const

/**
 * One lock as the first of a transaction, for where it has to be parsed each time: functions and columns, because
 * what is parsed costs several times what is done. It does not wait, and takes the lock before it is known
 * whether that is worth anything; the transaction is over then anyway.
 */
function shortLock(request: LockRequest, id: bigint, mode: LockMode): Statement {
  const { label, allowStaleSnapshot } = request
  const values = [String(id), `,${tokenLetter(mode)}${id},`]
  if (label !== undefined) values.push(labelMark + label)
  const bits =
    (mode === 'shared' ? 1 : 0) | (label === undefined ? 0 : 2) | (allowStaleSnapshot ? 4 : 0)
  const text = (shortTexts[bits] ??= shortLockText(request, mode))
  return { text, values, columns: shortColumns, scopes: scopesOf(request) }
}

const shortTexts: string[] = []

function shortLockText({ label, allowStaleSnapshot }: LockRequest, mode: LockMode): string {
  const taken = `CASE WHEN ${lockCall('try_', mode, parameter(1, 'int8'))} THEN ${parameter(2, 'text')} ELSE '' END`
  const asked = [
    `pg_catalog.set_config('holdfast.held', ${taken}, true)`,
    'pg_catalog.pg_is_in_recovery()',
    allowStaleSnapshot ? "''" : "pg_catalog.current_setting('transaction_isolation')",
    'pg_catalog.pg_backend_pid()',
    ...(label === undefined ? [] : [shown(applicationName, parameter(3, 'text'))]),
  ]
  return `SELECT ${asked.join(', ')}`
}

function oneLockText(request: LockRequest, mode: LockMode): string {
  const key = parameter(1, 'int8')
  const token = parameter(2, 'text')
  // A lock function that returns NULL has locked nothing.
  const wait = `WHEN ${lockCall('', mode, key)} IS NULL THEN ''`
  const waiting = request.brief
    ? briefWait(request, wait)
    : limited(`${limitText(request, 3)}::pg_catalog.text`, wait)
  const held = request.first ? "','" : filled(heldBefore, "','")
  const result = `CASE ${refusals(request).join(' ')}
    ELSE pg_catalog.set_config('holdfast.held', ${held} ${cat} CASE
      WHEN ${lockCall('try_', mode, key)} THEN ${token}
      ${doesNotWait(request) ? "ELSE ''" : `${waiting.join('\n      ')}\n      ELSE ${token}`} END, true) END`
  const before = request.first ? "''" : heldBefore
  const events = [before, result, ...labelEvents(request, 3)]
  return `SELECT pg_catalog.concat_ws('|', ${events.join(', ')}) AS answer, pg_catalog.pg_backend_pid()::pg_catalog.text AS pid`
}

/** The time left to a client's own timer has to be worked out as well. */
function doesNotWait({ attempt, brief, budgetMs }: LockRequest): boolean {
  return attempt || (brief && budgetMs !== undefined)
}

const lockTimeout = "pg_catalog.current_setting('lock_timeout')"

function set(setting: string, value: string): string {
  return `WHEN pg_catalog.set_config('${setting}', ${value}, true) IS NULL THEN ''`
}

function limited(limit: string, wait: string): readonly string[] {
  return [
    set('holdfast.saved', lockTimeout),
    set('lock_timeout', limit),
    wait,
    set('lock_timeout', "pg_catalog.current_setting('holdfast.saved')"),
  ]
}

/** A statement_timeout of the connection ends the statement as it would end any other. */
function briefWait({ first, yields, limitMs }: LockRequest, wait: string): readonly string[] {
  const isLimited = limitMs !== undefined
  const heeded = [
    ...(first ? [] : ["pg_catalog.current_setting('statement_timeout')"]),
    ...(yields && isLimited ? [lockTimeout] : []),
  ]
  const again =
    heeded.length === 0
      ? []
      : [`WHEN ${heeded.map((setting) => `${setting} ${ne} '0'`).join(' OR ')} THEN ''`]
  if (!isLimited) return [...again, wait]
  const limit = parameter(3, 'text')
  if (!yields) return [...again, ...limited(limit, wait)]
  // There is none of its own, or it would have been heeded.
  return [...again, set('lock_timeout', limit), wait, set('lock_timeout', "'0'")]
}

/** Where a lock would be worthless it is not taken. */
function refusals(request: LockRequest): readonly string[] {
  const standby = "WHEN pg_catalog.pg_is_in_recovery() THEN '#standby'"
  // Not READ COMMITTED, nor READ UNCOMMITTED, which is the same.
  const stale =
    "WHEN NOT pg_catalog.starts_with(pg_catalog.current_setting('transaction_isolation'), 'read ') THEN '#stale'"
  return request.allowStaleSnapshot ? [standby] : [standby, stale]
}

const tokenLetter = (mode: LockMode): string => (mode === 'shared' ? 's' : 'x')

/** Limit and budget, as bound by `limitText`. What does not wait needs neither. */
function limitValues(request: LockRequest): readonly string[] {
  return doesNotWait(request) ? [] : limitNumbers(request)
}

/** How long the wait may last, in milliseconds. */
function limitText(request: LockRequest, first: number): string {
  return shortestLimitMs(request, (at) => parameter(first + at, 'int8'), lockTimeout)
}

/** 63 bytes in all: the caller's own name is shortened so that the lock's is always seen. */
function labelEvents(request: LockRequest, firstLimit: number): string[] {
  if (request.label === undefined) return []
  const own = request.first
    ? applicationName
    : `pg_catalog.split_part(${applicationName}, '${labelMark}', 1)`
  const label = parameter(firstLimit + limitValues(request).length, 'text')
  return [silently(shown(own, label))]
}

const applicationName = "pg_catalog.current_setting('application_name')"

function shown(own: string, label: string): string {
  return `pg_catalog.set_config('application_name', pg_catalog.textcat(pg_catalog.left(${own}, 24), ${label}), true)`
}

function lockCall(prefix: '' | 'try_', mode: LockMode, args: string): string {
  return `pg_catalog.pg_${prefix}advisory_xact_lock${mode === 'shared' ? '_shared' : ''}(${args})`
}

const wantedColumns =
  'id pg_catalog.text, high pg_catalog.int4, low pg_catalog.int4, hashed pg_catalog.text, exclusive boolean'

/**
 * Keys as rows, duplicates merged to their strongest mode. `pair` keys live in a lock space of
 * their own; within a space the order is that of the number PostgreSQL locks, never of the name.
 */
export const wantedRows = (json: string): string => `
  SELECT space, id, high, low, pg_catalog.bool_or(exclusive) AS exclusive,
         CASE WHEN space ${eq} 1 THEN id::pg_catalog.text ELSE high::pg_catalog.text ${cat} '/' ${cat} low::pg_catalog.text END AS number
  FROM (
    SELECT 1 AS space, coalesce(r.id::pg_catalog.int8, pg_catalog.hashtext(r.hashed)::pg_catalog.int8) AS id,
           NULL::pg_catalog.int4 AS high, NULL::pg_catalog.int4 AS low, r.exclusive
    FROM pg_catalog.jsonb_to_recordset(${json}) AS r(${wantedColumns})
    WHERE r.high IS NULL
    UNION ALL
    SELECT 2, (r.high::pg_catalog.int8 ${shifted} 32) ${bitOr} (coalesce(r.low, pg_catalog.hashtext(r.hashed))::pg_catalog.int8 ${bitAnd} 4294967295),
           r.high, coalesce(r.low, pg_catalog.hashtext(r.hashed)), r.exclusive
    FROM pg_catalog.jsonb_to_recordset(${json}) AS r(${wantedColumns})
    WHERE r.high IS NOT NULL
  ) AS k
  GROUP BY space, id, high, low`

function manyLocks(request: LockRequest): Statement {
  const values = [keysJson(request.wanted), ...limitValues(request)]
  if (request.label !== undefined) values.push(labelMark + request.label)
  return { ...named(request, 'many', 'exclusive'), values, columns, scopes: scopesOf(request) }
}

function manyLocksText(request: LockRequest): string {
  const limited = !request.attempt
  // The lock functions return void, which no client decodes; trying returns a boolean.
  const taking = limited
    ? `WHEN ${anyLock('try_', '')} THEN true
              WHEN pg_catalog.set_config('lock_timeout', ${leftOfLimit('limit_ms', 'began')}::pg_catalog.text, true) IS NULL THEN false
              ELSE ${anyLock('', ' IS NOT NULL')}`
    : `ELSE ${anyLock('try_', '')}`
  const events = [
    'start.held_before',
    `coalesce(start.refused, pg_catalog.set_config('holdfast.held', ${filled('start.held_before', "','")} ${cat} summary.tokens, true))`,
    'summary.busy',
    ...(limited ? [silently("pg_catalog.set_config('lock_timeout', start.saved, true)")] : []),
    ...labelEvents(request, 2),
  ]
  return `
WITH wanted AS MATERIALIZED (${wantedRows(parameter(1, 'jsonb'))}
), start AS MATERIALIZED (
  SELECT CASE ${refusals(request).join(' ')} END AS refused,
         ${heldBefore} AS held_before,
         ${limited ? `${limitText(request, 2)} AS limit_ms,` : ''}
         pg_catalog.current_setting('lock_timeout') AS saved,
         pg_catalog.clock_timestamp() AS began
), taken AS MATERIALIZED (
  SELECT CASE WHEN refused IS NOT NULL THEN false
              ${taking} END AS granted,
         CASE WHEN exclusive THEN 'x' ELSE 's' END ${cat} number ${cat} ',' AS token
  FROM (SELECT * FROM start CROSS JOIN wanted ORDER BY space, id) AS ordered
), summary AS MATERIALIZED (
  SELECT coalesce(pg_catalog.string_agg(token, '') FILTER (WHERE granted), '') AS tokens,
         coalesce(pg_catalog.string_agg(token, '') FILTER (WHERE NOT granted), '') AS busy
  FROM taken
)
SELECT pg_catalog.concat_ws('|', ${events.join(', ')}) AS answer, pg_catalog.pg_backend_pid()::pg_catalog.text AS pid
FROM start CROSS JOIN summary`
}

/** The lock of one row of `wantedRows`. */
function anyLock(prefix: '' | 'try_', granted: string): string {
  const inMode = (mode: LockMode): string =>
    `CASE WHEN space ${eq} 1 THEN ${lockCall(prefix, mode, 'id')}${granted} ELSE ${lockCall(prefix, mode, 'high, low')}${granted} END`
  return `CASE WHEN exclusive THEN ${inMode('exclusive')} ELSE ${inMode('shared')} END`
}

/** The one parameter that carries the keys. */
export function keysJson(wanted: readonly LockedKey[]): string {
  return JSON.stringify(
    wanted.map(({ key: { lock }, mode }) => ({
      ...(lock.kind === 'bigint' ? { id: String(lock.id) } : {}),
      ...('text' in lock ? { hashed: lock.text } : {}),
      ...('high' in lock ? { high: lock.high } : {}),
      ...('low' in lock ? { low: lock.low } : {}),
      exclusive: mode === 'exclusive',
    })),
  )
}

const refusedBy: Readonly<Record<string, LockRefusal | undefined>> = {
  '#standby': 'LOCK_ON_STANDBY',
  '#stale': 'LOCK_STALE_SNAPSHOT',
}

/** Reads the answer of `lockStatement`. */
export function lockAnswer(row: Readonly<Record<string, unknown>>): LockAnswer {
  if (isShort([row])) return shortAnswer(row)
  const [before = '', result = '', busy = ''] = String(row['answer']).split('|')
  const refused = refusedBy[result]
  const granted = refused === undefined ? parseTokens(result.slice(Math.max(1, before.length))) : []
  return {
    refused,
    before: parseTokens(before),
    rowsBefore: before.includes(`,${rowsLetter}`) ? rowTokens(before) : [],
    granted,
    complete: granted.length > 0 && busy === '',
    pid: Number(row['pid']),
  }
}

/** Whether that was the short statement, which does not wait. */
export function isShort([row]: readonly Readonly<Record<string, unknown>>[]): boolean {
  return row?.['held'] !== undefined
}

/** All its values are text. Somebody else has the lock where nothing is held. */
function shortAnswer({ held, standby, level, pid }: Readonly<Record<string, unknown>>): LockAnswer {
  const stale =
    String(level).startsWith('read ') || level === '' ? undefined : 'LOCK_STALE_SNAPSHOT'
  const refused = standby === 't' ? 'LOCK_ON_STANDBY' : stale
  const granted = refused === undefined ? parseTokens(String(held)) : []
  return {
    refused,
    before: [],
    rowsBefore: [],
    granted,
    complete: granted.length > 0,
    pid: Number(pid),
  }
}

/** In the marker, begins what stands for row locks taken through Holdfast. */
const rowsLetter = 'r'

/** Stands in the marker for rows of a table that are locked: `rx` or `rs`, and the table's hash. */
export function rowsToken(table: string, mode: LockMode): string {
  return rowsLetter + tokenLetter(mode) + hash('sha256', table).slice(0, 12)
}

function rowTokens(list: string): string[] {
  return list.split(',').filter((token) => token.startsWith(rowsLetter))
}

/** What a transaction holds by its marker: locks by name, and rows by the tokens of their tables. */
export function heldBy(held: string): Pick<LockAnswer, 'before' | 'rowsBefore'> {
  return { before: parseTokens(held), rowsBefore: rowTokens(held) }
}

function parseTokens(list: string): LockToken[] {
  if (list.length <= 1) return []
  const tokens: LockToken[] = []
  for (const token of list.split(',')) if (lockToken.test(token)) tokens.push(parseToken(token))
  return tokens
}

/** Rows have another letter, and what else stands in a marker is not ours. */
const lockToken = /^[xs]-?\d+(?:\/-?\d+)?$/

function parseToken(token: string): LockToken {
  const mode = token.startsWith('s') ? 'shared' : 'exclusive'
  const [high, low] = token.slice(1).split('/')
  if (low === undefined) return { mode, space: 1, id: BigInt(high as string) }
  return { mode, space: 2, id: (BigInt(high as string) << 32n) | BigInt.asUintN(32, BigInt(low)) }
}
