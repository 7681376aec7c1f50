import type { Statement } from '../../../core/driver.ts'
import { sqlStateOf } from '../../../core/sql-state.ts'
import { quoteIdentifier } from '../sql/identifier.ts'
import { parameters, type ParameterType } from '../sql/parameter.ts'
import { cat, eq, minus, ne, times, unlike } from '../sql/operators.ts'

/** It cannot be, somebody else has brought it further, the target cannot connect to the source, or lacks rows. */
export type MoveRefusal = 'refused' | 'overtaken' | 'unreachable' | 'incomplete'

/** What the functions of a move raise. */
const refusals: Readonly<Record<string, MoveRefusal>> = {
  HF003: 'refused',
  HF004: 'overtaken',
  HF005: 'unreachable',
  HF009: 'incomplete',
}

/** Why a server would not do a step of a move; nothing if the error is another one. */
export function moveRefusal(error: unknown): MoveRefusal | undefined {
  return refusals[sqlStateOf(error) ?? '']
}

/** The statement took longer than it was given. */
export function isCancelled(error: unknown): boolean {
  return sqlStateOf(error) === '57014'
}

/** The move that a replication slot belongs to, by its name; see `sql/internal/move_name.sql`. */
export function moveOfSlot(name: string): string | undefined {
  const hex = /^holdfast_move_([0-9a-f]{32})$/.exec(name)?.[1]
  return hex?.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

function call(
  schema: string,
  name: string,
  args: readonly (readonly [type: ParameterType, value: string | number | null])[],
): Statement {
  return {
    text: `SELECT ${quoteIdentifier(schema)}.${name}(${parameters(args.map(([type]) => type))})::pg_catalog.text AS answer`,
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
    | 'count_move'
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
  /** Both ends are parts of it. */
  readonly cluster: string
  readonly buckets: readonly number[]
  readonly source: string
  readonly target: string
  readonly tables: readonly string[]
}

/** See `sql/operator/open_move.sql`. */
export function openMove(schema: string, facts: MoveFacts): Statement {
  const { id, cluster, buckets, source, target, tables } = facts
  return {
    text: `SELECT ${quoteIdentifier(schema)}.open_move($1::pg_catalog.text::pg_catalog.uuid, $2::pg_catalog.text::pg_catalog.uuid,
  $3::pg_catalog.text::pg_catalog.int4[], $4::pg_catalog.text, $5::pg_catalog.text,
  ARRAY(SELECT pg_catalog.jsonb_array_elements_text($6::pg_catalog.text::pg_catalog.jsonb))) AS answer`,
    values: [id, cluster, `{${buckets.join(',')}}`, source, target, JSON.stringify(tables)],
  }
}

/** See `sql/operator/move_shape.sql`. */
export function moveShape(schema: string, tables: readonly string[]): Statement {
  return {
    text: `SELECT ${quoteIdentifier(schema)}.move_shape(
  ARRAY(SELECT pg_catalog.jsonb_array_elements_text($1::pg_catalog.text::pg_catalog.jsonb))) AS answer`,
    values: [JSON.stringify(tables)],
  }
}

/** What has to be done at one end of a move, and takes a right of its own; see `sql/operator/move_rights.sql`. */
export type MovePart = 'publish' | 'slot' | 'keep' | 'receive' | 'delete'

/** See `sql/operator/move_rights.sql`. */
export function moveRights(
  schema: string,
  parts: readonly MovePart[],
  tables: readonly string[],
  connection: string,
): Statement {
  return {
    text: `SELECT ${quoteIdentifier(schema)}.move_rights($1::pg_catalog.text::pg_catalog.text[],
  ARRAY(SELECT pg_catalog.jsonb_array_elements_text($2::pg_catalog.text::pg_catalog.jsonb)), $3::pg_catalog.text) AS answer`,
    values: [`{${parts.join(',')}}`, JSON.stringify(tables), connection],
  }
}

/** See `sql/operator/refuse_hidden_rows.sql`. */
export function refuseHiddenRows(
  schema: string,
  tables: readonly string[],
  peer: string | null,
): Statement {
  return {
    text: `SELECT ${quoteIdentifier(schema)}.refuse_hidden_rows(
  ARRAY(SELECT pg_catalog.jsonb_array_elements_text($1::pg_catalog.text::pg_catalog.jsonb)), $2::pg_catalog.text)::pg_catalog.text AS answer`,
    values: [JSON.stringify(tables), peer],
  }
}

/** See `sql/operator/clear_strays.sql`. */
export function clearStrays(schema: string, tables: readonly string[], most: number): Statement {
  return {
    text: `SELECT ${quoteIdentifier(schema)}.clear_strays(
  ARRAY(SELECT pg_catalog.jsonb_array_elements_text($1::pg_catalog.text::pg_catalog.jsonb)), $2::pg_catalog.text::pg_catalog.int4)::pg_catalog.text AS answer`,
    values: [JSON.stringify(tables), String(most)],
  }
}

/** See `sql/operator/adopt_buckets.sql`. */
export function adoptBuckets(
  schema: string,
  buckets: readonly number[],
  versions: readonly number[],
): Statement {
  return call(schema, 'adopt_buckets', [
    ['int4[]', `{${buckets.join(',')}}`],
    ['int8[]', `{${versions.join(',')}}`],
  ])
}

/** See `sql/operator/refuse_move.sql`. */
export function refuseMove(schema: string, facts: MoveFacts): Statement {
  const { id, cluster, buckets, source, target } = facts
  return call(schema, 'refuse_move', [
    ['uuid', id],
    ['uuid', cluster],
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

/** See `sql/operator/expect_rows.sql`. */
export function expectRows(schema: string, id: string, counts: string): Statement {
  return call(schema, 'expect_rows', [
    ['uuid', id],
    ['text', counts],
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
    text: `SELECT pg_catalog.set_config('statement_timeout', $1::pg_catalog.text, true)`,
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
  'name', open.name, 'ageMs', open.age, 'state', open.state, 'query', open.query) ORDER BY open.age DESC), '[]')::pg_catalog.text
  AS answer
FROM (
  SELECT lock.virtualxid AS id, lock.pid, coalesce(activity.application_name, '') AS name,
    coalesce((extract(epoch FROM pg_catalog.clock_timestamp() ${minus} activity.xact_start) ${times} 1000)::pg_catalog.int8, 0) AS age,
    coalesce(activity.state, '') AS state, coalesce(activity.query, '') AS query
  FROM pg_catalog.pg_locks AS lock
  LEFT JOIN pg_catalog.pg_stat_activity AS activity ON activity.pid ${eq} lock.pid
  WHERE lock.locktype ${eq} 'virtualxid' AND lock.mode ${eq} 'ExclusiveLock'
    AND lock.pid ${ne} pg_catalog.pg_backend_pid()
    AND (activity.datname IS NULL OR activity.datname ${eq} pg_catalog.current_database())
    AND coalesce(activity.backend_type, '') ${ne} ALL ('{autovacuum worker,walsender,parallel worker}')
    AND coalesce(activity.backend_type, '') ${unlike} 'logical replication%'
  UNION ALL
  SELECT 'prepared ' ${cat} gid, 0, gid, (extract(epoch FROM pg_catalog.clock_timestamp() ${minus} prepared) ${times} 1000)::pg_catalog.int8,
    'prepared', ''
  FROM pg_catalog.pg_prepared_xacts WHERE database ${eq} pg_catalog.current_database()
) AS open`,
  values: [],
}
