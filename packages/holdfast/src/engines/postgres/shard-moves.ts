import type { Statement } from '../../core/driver.ts'
import { sqlStateOf } from '../../core/sql-state.ts'
import { quoteIdentifier } from './identifier.ts'

/** It cannot be, somebody else has brought it further, or the target cannot connect to the source. */
export type MoveRefusal = 'refused' | 'overtaken' | 'unreachable'

/** What the functions of a move raise. */
const refusals: Readonly<Record<string, MoveRefusal>> = {
  HF003: 'refused',
  HF004: 'overtaken',
  HF005: 'unreachable',
}

/** Why a server would not do a step of a move; nothing if the error is another one. */
export function moveRefusal(error: unknown): MoveRefusal | undefined {
  return refusals[sqlStateOf(error) ?? '']
}

/** The statement took longer than it was given. */
export function isCancelled(error: unknown): boolean {
  return sqlStateOf(error) === '57014'
}

function call(
  schema: string,
  name: string,
  args: readonly (readonly [type: string, value: string | number | null])[],
): Statement {
  const list = args.map(([type], at) => `$${at + 1}::text::${type}`).join(', ')
  return {
    text: `SELECT ${quoteIdentifier(schema)}.${name}(${list})::text AS answer`,
    values: args.map(([, value]) => (value === null ? null : String(value))),
  }
}

/** A function that takes nothing but the id of the move. */
export function moveStep(
  schema: string,
  name:
    | 'publish_move'
    | 'open_slot'
    | 'mark_leaving'
    | 'write_end'
    | 'hand_over'
    | 'undo_move'
    | 'end_move'
    | 'read_move',
  id: string,
): Statement {
  return call(schema, name, [['uuid', id]])
}

/** What a move is about. */
export interface MoveFacts {
  readonly id: string
  readonly buckets: readonly number[]
  readonly source: string
  readonly target: string
  readonly tables: readonly string[]
}

/** See `sql/operator/open_move.sql`. */
export function openMove(schema: string, facts: MoveFacts): Statement {
  const { id, buckets, source, target, tables } = facts
  return {
    text: `SELECT ${quoteIdentifier(schema)}.open_move($1::text::uuid, $2::text::int4[], $3::text, $4::text,
  ARRAY(SELECT pg_catalog.jsonb_array_elements_text($5::text::jsonb))) AS answer`,
    values: [id, `{${buckets.join(',')}}`, source, target, JSON.stringify(tables)],
  }
}

/** See `sql/operator/refuse_move.sql`. */
export function refuseMove(schema: string, facts: MoveFacts): Statement {
  const { id, buckets, source, target } = facts
  return call(schema, 'refuse_move', [
    ['uuid', id],
    ['int4[]', `{${buckets.join(',')}}`],
    ['text', source],
    ['text', target],
  ])
}

/** See `sql/operator/subscribe_move.sql`. */
export function subscribeMove(
  schema: string,
  id: string,
  months: string,
  connection: string,
): Statement {
  return call(schema, 'subscribe_move', [
    ['uuid', id],
    ['text', months],
    ['text', connection],
  ])
}

/** See `sql/operator/take_move.sql`. */
export function takeMove(schema: string, id: string, versions: readonly number[]): Statement {
  return call(schema, 'take_move', [
    ['uuid', id],
    ['int8[]', `{${versions.join(',')}}`],
  ])
}

/** See `sql/operator/close_slot.sql`. */
export function closeSlot(schema: string, id: string, slots: string | null): Statement {
  return call(schema, 'close_slot', [
    ['uuid', id],
    ['text', slots],
  ])
}

/** See `sql/operator/clear_move.sql`. */
export function clearMove(schema: string, id: string, most: number): Statement {
  return call(schema, 'clear_move', [
    ['uuid', id],
    ['int4', most],
  ])
}

/** See `sql/operator/list_moves.sql`. */
export function listMoves(schema: string, ended: number): Statement {
  return call(schema, 'list_moves', [['int4', ended]])
}

/** Ends what comes next in this transaction if it takes longer. */
export function limitStatements(ms: number): Statement {
  return {
    text: `SELECT pg_catalog.set_config('statement_timeout', $1::text, true)`,
    values: [String(ms)],
  }
}

/**
 * Who has a transaction open in this database, prepared ones too, the oldest first, as JSON. Every
 * transaction has its virtual id before it has a snapshot, so whoever is not in this list and not part of
 * replication sees what was committed before it was asked for. (A snapshot that was exported and is then
 * imported by somebody else is the exception; such a transaction must not use Holdfast.)
 */
export const transactionsHere: Statement = {
  text: `
SELECT coalesce(pg_catalog.json_agg(pg_catalog.json_build_object('transaction', open.id, 'pid', open.pid,
  'name', open.name, 'ageMs', open.age, 'state', open.state, 'query', open.query) ORDER BY open.age DESC), '[]')::text
  AS answer
FROM (
  SELECT lock.virtualxid AS id, lock.pid, coalesce(activity.application_name, '') AS name,
    coalesce((extract(epoch FROM pg_catalog.clock_timestamp() - activity.xact_start) * 1000)::int8, 0) AS age,
    coalesce(activity.state, '') AS state, coalesce(activity.query, '') AS query
  FROM pg_catalog.pg_locks AS lock
  LEFT JOIN pg_catalog.pg_stat_activity AS activity ON activity.pid = lock.pid
  WHERE lock.locktype = 'virtualxid' AND lock.mode = 'ExclusiveLock'
    AND lock.pid <> pg_catalog.pg_backend_pid()
    AND (activity.datname IS NULL OR activity.datname = pg_catalog.current_database())
    AND coalesce(activity.backend_type, '') NOT IN ('autovacuum worker', 'walsender', 'parallel worker')
    AND coalesce(activity.backend_type, '') NOT LIKE 'logical replication%'
  UNION ALL
  SELECT 'prepared ' || gid, 0, gid, (extract(epoch FROM pg_catalog.clock_timestamp() - prepared) * 1000)::int8,
    'prepared', ''
  FROM pg_catalog.pg_prepared_xacts WHERE database = pg_catalog.current_database()
) AS open`,
  values: [],
}
