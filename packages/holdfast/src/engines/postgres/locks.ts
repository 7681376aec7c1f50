import type { Statement } from '../../core/driver.ts'
import type { LockKey } from '../../core/lock-key.ts'

/**
 * One statement takes any number of advisory locks. Everything else it does rides along in the
 * same round trip. PostgreSQL evaluates the arguments of a function from left to right, so their
 * order is the order of events (pinned by the server-behaviour suite):
 *
 *   1. note isolation level, recovery state and the transaction-local marker `holdfast.held`
 *   2. save lock_timeout as the string the server gave, set ours
 *   3. take the locks, sorted; not at all where they would be worthless
 *   4. restore lock_timeout, show the name in pg_stat_activity
 *
 * The marker, the timeout and application_name are transaction-local and undone by ROLLBACK TO
 * SAVEPOINT exactly as the locks are, so the marker is an honest record of what is held. The answer
 * is one text column: a client spends more time on columns than on characters.
 */

export type LockMode = 'exclusive' | 'shared'

/** A key with the mode it is wanted in. */
export interface WantedLock {
  readonly key: LockKey
  readonly mode: LockMode
}

export interface LockRequest {
  readonly wanted: readonly WantedLock[]
  /** Take what is free and do not wait. */
  readonly attempt: boolean
  /** Longest wait for all keys together; `undefined` leaves the caller's lock_timeout in force. */
  readonly limitMs: number | undefined
  /** Milliseconds from BEGIN that the wait may not exceed. */
  readonly budgetMs: number | undefined
  /** Shown in pg_stat_activity while the transaction lasts. */
  readonly label: string | undefined
  readonly allowStaleSnapshot: boolean
}

/** One granted lock: its mode, the lock space (1 bigint, 2 pair) and its number there. */
export interface LockToken {
  readonly mode: LockMode
  readonly space: 1 | 2
  readonly id: bigint
}

/** What the statement answers. */
export interface LockAnswer {
  readonly isolation: string
  readonly standby: boolean
  /** What this transaction held before, oldest first. */
  readonly before: readonly LockToken[]
  /** Rows were locked through Holdfast before this. */
  readonly rowsBefore: boolean
  /** What was granted, in the order it was taken. */
  readonly granted: readonly LockToken[]
  /** Every key was granted. */
  readonly complete: boolean
  readonly pid: number
}

/** Separates the caller's application_name from the lock's name. */
export const labelMark = ' hf:'

const marker = "pg_catalog.current_setting('holdfast.held', true)"
const fresh = "pg_catalog.current_setting('transaction_isolation') <> 'repeatable read'"
const primary = 'NOT pg_catalog.pg_is_in_recovery()'

/** Values as text, in the order of their placeholders; every placeholder carries its cast. */
function placeholder(number: number, type: 'text' | 'int4' | 'int8' | 'jsonb'): string {
  return type === 'text' ? `$${number}::text` : `$${number}::text::${type}`
}

/** Evaluates to NULL, which concat_ws leaves out: for what is done for its effect only. */
const silently = (call: string): string => `CASE WHEN ${call} IS NULL THEN '' END`

/** What `lockStatement` returns. */
const columns = ['answer', 'pid'] as const

/** Texts by name. There are a few dozen at most, and building one costs more than sending it. */
const texts = new Map<string, string>()

function cached(name: string, build: () => string): string {
  let text = texts.get(name)
  if (text === undefined) {
    text = build()
    texts.set(name, text)
  }
  return text
}

/** The statement that takes the locks of a request. */
export function lockStatement(request: LockRequest): Statement {
  const [only] = request.wanted
  return request.wanted.length === 1 && only?.key.lock.kind === 'bigint'
    ? oneLock(request, only.key.lock.id, only.mode)
    : manyLocks(request)
}

function oneLock(request: LockRequest, id: bigint, mode: LockMode): Statement {
  const name = `${request.attempt ? 'try' : ''}lock_${mode}_${flags(request)}`
  const values = [String(id), `${tokenLetter(mode)}${id},`, ...limitValues(request)]
  if (request.label !== undefined) values.push(labelMark + request.label)
  return { text: cached(name, () => oneLockText(request, mode)), values, name, columns }
}

function oneLockText(request: LockRequest, mode: LockMode): string {
  const call = lockCall(request.attempt, mode, placeholder(1, 'int8'))
  const token = `CASE WHEN ${allowed(request)} THEN CASE WHEN ${call} THEN ${placeholder(2, 'text')} ELSE '' END ELSE '' END`
  const limited = request.limitMs !== undefined
  const set = (setting: string, value: string): string =>
    silently(`pg_catalog.set_config('${setting}', ${value}, true)`)
  const events = [
    "pg_catalog.current_setting('transaction_isolation')",
    'pg_catalog.pg_is_in_recovery()',
    `coalesce(${marker}, '')`,
    ...(limited
      ? [
          set('holdfast.saved', "pg_catalog.current_setting('lock_timeout')"),
          set('lock_timeout', limitText(request, 3, undefined)),
        ]
      : []),
    `pg_catalog.set_config('holdfast.held', coalesce(nullif(${marker}, ''), ',') || ${token}, true)`,
    ...(limited ? [set('lock_timeout', "pg_catalog.current_setting('holdfast.saved')")] : []),
    ...labelEvents(request, 3),
  ]
  return `SELECT pg_catalog.concat_ws('|', ${events.join(', ')}) AS answer, pg_catalog.pg_backend_pid() AS pid`
}

const tokenLetter = (mode: LockMode): string => (mode === 'shared' ? 's' : 'x')

/** Limit and budget, as bound by `limitText`. */
function limitValues({ limitMs, budgetMs }: LockRequest): string[] {
  if (limitMs === undefined) return []
  return budgetMs === undefined ? [String(limitMs)] : [String(limitMs), String(budgetMs)]
}

/**
 * The lock_timeout to set, in milliseconds: the limit, less what has passed since `began`, and no
 * later than the client's own timer, counted from the start of the transaction by the server.
 */
function limitText(request: LockRequest, first: number, began: string | undefined): string {
  if (request.budgetMs === undefined && began === undefined) return placeholder(first, 'text')
  const since = (start: string): string =>
    `(extract(epoch FROM pg_catalog.clock_timestamp() - ${start}) * 1000)::int8`
  const limit = placeholder(first, 'int8')
  const left = began === undefined ? limit : `${limit} - ${since(began)}`
  if (request.budgetMs === undefined) return `greatest(1, ${left})::text`
  const budget = `${placeholder(first + 1, 'int8')} - ${since('pg_catalog.now()')}`
  return `greatest(1, least(${left}, ${budget}))::text`
}

/** 63 bytes in all: the caller's own name is shortened so that the lock's is always seen. */
function labelEvents(request: LockRequest, firstLimit: number): string[] {
  if (request.label === undefined) return []
  const application = `pg_catalog.left(pg_catalog.split_part(pg_catalog.current_setting('application_name'), '${labelMark}', 1), 24)`
  const label = placeholder(firstLimit + limitValues(request).length, 'text')
  return [silently(`pg_catalog.set_config('application_name', ${application} || ${label}, true)`)]
}

function allowed(request: LockRequest): string {
  return request.allowStaleSnapshot ? primary : `${fresh} AND ${primary}`
}

function flags(request: LockRequest): string {
  const limit = request.limitMs === undefined ? '' : request.budgetMs === undefined ? 'l' : 'b'
  return `${limit}${request.label === undefined ? '' : 'n'}${request.allowStaleSnapshot ? 's' : ''}`
}

/** The lock functions return void (or a boolean when trying); no client has to decode void. */
function lockCall(attempt: boolean, mode: LockMode, args: string): string {
  const name = `pg_${attempt ? 'try_' : ''}advisory_xact_lock${mode === 'shared' ? '_shared' : ''}`
  return `(pg_catalog.${name}(${args})${attempt ? '' : ' IS NOT NULL'})`
}

/**
 * Keys as rows, duplicates merged to their strongest mode. `pair` keys live in a lock space of
 * their own; within a space the order is that of the number PostgreSQL locks, never of the name.
 */
const wantedRows = (json: string): string => `
  SELECT space, id, high, low, pg_catalog.bool_or(exclusive) AS exclusive,
         CASE WHEN space = 1 THEN id::text ELSE high::text || '/' || low::text END AS number
  FROM (
    SELECT 1 AS space, coalesce(r.id::int8, pg_catalog.hashtext(r.hashed)::int8) AS id,
           NULL::int4 AS high, NULL::int4 AS low, r.exclusive
    FROM pg_catalog.jsonb_to_recordset(${json}) AS r(id text, high int4, low int4, hashed text, exclusive boolean)
    WHERE r.high IS NULL
    UNION ALL
    SELECT 2, (r.high::int8 << 32) | (coalesce(r.low, pg_catalog.hashtext(r.hashed))::int8 & 4294967295),
           r.high, coalesce(r.low, pg_catalog.hashtext(r.hashed)), r.exclusive
    FROM pg_catalog.jsonb_to_recordset(${json}) AS r(id text, high int4, low int4, hashed text, exclusive boolean)
    WHERE r.high IS NOT NULL
  ) AS k
  GROUP BY space, id, high, low`

function manyLocks(request: LockRequest): Statement {
  const name = `${request.attempt ? 'try' : ''}locks_${flags(request)}`
  const values = [keysJson(request.wanted), ...limitValues(request)]
  if (request.label !== undefined) values.push(labelMark + request.label)
  return { text: cached(name, () => manyLocksText(request)), values, name, columns }
}

function manyLocksText(request: LockRequest): string {
  const call = (mode: LockMode): string =>
    `CASE WHEN space = 1 THEN ${lockCall(request.attempt, mode, 'id')} ELSE ${lockCall(request.attempt, mode, 'high, low')} END`
  const limited = request.limitMs !== undefined
  const limit = limited
    ? `pg_catalog.set_config('lock_timeout', ${limitText(request, 2, 'began')}, true) AS limited,`
    : ''
  const events = [
    'start.isolation',
    'start.standby',
    'start.held_before',
    `pg_catalog.set_config('holdfast.held', coalesce(nullif(start.held_before, ''), ',') || summary.tokens, true)`,
    'summary.busy',
    ...(limited ? [silently("pg_catalog.set_config('lock_timeout', start.saved, true)")] : []),
    ...labelEvents(request, 2),
  ]
  return `
WITH wanted AS MATERIALIZED (${wantedRows(placeholder(1, 'jsonb'))}
), start AS MATERIALIZED (
  SELECT pg_catalog.current_setting('transaction_isolation') AS isolation,
         pg_catalog.pg_is_in_recovery() AS standby,
         coalesce(${marker}, '') AS held_before,
         pg_catalog.current_setting('lock_timeout') AS saved,
         pg_catalog.clock_timestamp() AS began
), taken AS MATERIALIZED (
  SELECT ${limit}
         CASE WHEN ${allowed(request)} THEN
           CASE WHEN exclusive THEN ${call('exclusive')} ELSE ${call('shared')} END
         ELSE false END AS granted,
         CASE WHEN exclusive THEN 'x' ELSE 's' END || number || ',' AS token
  FROM (SELECT * FROM start CROSS JOIN wanted ORDER BY space, id) AS ordered
), summary AS MATERIALIZED (
  SELECT coalesce(pg_catalog.string_agg(token, '') FILTER (WHERE granted), '') AS tokens,
         coalesce(pg_catalog.string_agg(token, '') FILTER (WHERE NOT granted), '') AS busy
  FROM taken
)
SELECT pg_catalog.concat_ws('|', ${events.join(', ')}) AS answer, pg_catalog.pg_backend_pid() AS pid
FROM start CROSS JOIN summary`
}

function keysJson(wanted: readonly WantedLock[]): string {
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

/** Reads the answer of `lockStatement`. */
export function lockAnswer(row: Readonly<Record<string, unknown>>): LockAnswer {
  const [isolation = '', standby, before = '', held = '', busy = ''] = String(row['answer']).split(
    '|',
  )
  const granted = parseTokens(held.slice(Math.max(1, before.length)))
  return {
    isolation,
    standby: standby === 't',
    before: parseTokens(before),
    rowsBefore: before.includes(`,${rowsToken},`),
    granted,
    complete: granted.length > 0 && busy === '',
    pid: Number(row['pid']),
  }
}

/** In the marker, stands for row locks taken through Holdfast. */
export const rowsToken = 'r'

function parseTokens(list: string): LockToken[] {
  if (list.length <= 1) return []
  return list
    .split(',')
    .filter((token) => token !== '' && token !== rowsToken)
    .map(parseToken)
}

function parseToken(token: string): LockToken {
  const mode = token.startsWith('s') ? 'shared' : 'exclusive'
  const [high, low] = token.slice(1).split('/')
  if (low === undefined) return { mode, space: 1, id: BigInt(high as string) }
  return { mode, space: 2, id: (BigInt(high as string) << 32n) | BigInt.asUintN(32, BigInt(low)) }
}

/** Whether this transaction holds the key, by the transaction-local marker. */
export function heldStatement(key: LockKey, mode: LockMode): Statement {
  const has = (letter: string): string =>
    `pg_catalog.strpos(coalesce(${marker}, ''), ',${letter}' || number || ',') > 0`
  const test = mode === 'shared' ? `${has('x')} OR ${has('s')}` : has('x')
  return {
    text: `SELECT ${test} AS held FROM (${wantedRows(placeholder(1, 'jsonb'))}) AS wanted`,
    values: [keysJson([{ key, mode: 'exclusive' }])],
  }
}

/** Whether any advisory lock of this backend is really in the lock table. */
export const locksAreReal: Statement = {
  text: `SELECT EXISTS (SELECT FROM pg_catalog.pg_locks
    WHERE locktype = 'advisory' AND granted AND pid = pg_catalog.pg_backend_pid()) AS real`,
  values: [],
}

const lockTableRow = `l.locktype = 'advisory' AND l.granted
  AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
  AND l.objsubid = wanted.space
  AND ((l.classid::int8 << 32) | l.objid::int8) = wanted.id`

/** Who holds these keys now, other than this backend. */
export function lockHolders(wanted: readonly WantedLock[]): Statement {
  return {
    text: `
SELECT DISTINCT a.pid, a.application_name, coalesce(a.state, '') AS state, coalesce(a.query, '') AS query,
       coalesce(extract(epoch FROM pg_catalog.clock_timestamp() - a.xact_start) * 1000, 0)::int8::text AS age_ms
FROM (${wantedRows(placeholder(1, 'jsonb'))}) AS wanted
JOIN pg_catalog.pg_locks AS l ON ${lockTableRow}
JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
WHERE l.pid <> pg_catalog.pg_backend_pid()`,
    values: [keysJson(wanted)],
  }
}

/** Which of these backends still hold these locks; for transactions that end out of our sight. */
export function stillHeld(
  holds: readonly { readonly pid: number; readonly space: number; readonly id: bigint }[],
): Statement {
  return {
    text: `
SELECT DISTINCT l.pid
FROM pg_catalog.jsonb_to_recordset(${placeholder(1, 'jsonb')}) AS wanted(pid int4, space int2, id int8)
JOIN pg_catalog.pg_locks AS l ON l.pid = wanted.pid AND ${lockTableRow}`,
    values: [JSON.stringify(holds.map((hold) => ({ ...hold, id: String(hold.id) })))],
  }
}
