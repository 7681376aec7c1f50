import type { Row, Statement } from '../../../core/driver.ts'
import { type FunctionCall, functionCall } from '../sql/function-call.ts'
import { quoteIdentifier } from '../sql/identifier.ts'
import { isoText, mayRead } from './settings.ts'
import { bitAnd, bitOr, eq, gt, minus, shifted } from '../sql/operators.ts'

/** Names and minutes that processes have written down; see `sql/app/note_locks.sql`. */

/** One lock for `note_locks`, by its id or by what the server is to hash. */
export type NoteEntry = { readonly name: string; readonly namespace: string } & (
  | { readonly id: string }
  | { readonly hashtext: string; readonly high?: number }
)

export function noteLocks(schema: string, namesJson: string, minutesJson: string): FunctionCall {
  return functionCall(schema, 'note_locks', [
    ['jsonb', namesJson],
    ['jsonb', minutesJson],
  ])
}

/** A name as it was noted. */
export interface NotedName {
  readonly id: string
  readonly name: string
  readonly namespace: string
}

/** The names of these locks, as far as they were noted. */
export function namesOf(schema: string, ids: readonly string[]): Statement {
  return {
    text: `SELECT n.id, n.name, n.namespace
FROM pg_catalog.jsonb_array_elements_text($1::pg_catalog.text::pg_catalog.jsonb) AS wanted(id)
JOIN ${quoteIdentifier(schema)}.lock_names AS n
  ON n.space ${eq} pg_catalog.left(wanted.id, 1)::pg_catalog.int2 AND n.number ${eq} CASE
    WHEN pg_catalog.left(wanted.id, 1) ${eq} '1' THEN pg_catalog.substr(wanted.id, 3)::pg_catalog.int8
    ELSE (pg_catalog.split_part(pg_catalog.substr(wanted.id, 3), ',', 1)::pg_catalog.int8 ${shifted} 32)
      ${bitOr} (pg_catalog.split_part(wanted.id, ',', 2)::pg_catalog.int8 ${bitAnd} 4294967295) END`,
    values: [JSON.stringify(ids)],
    name: 'observe_names_of',
    columns: ['id', 'name', 'namespace'],
  }
}

export function notedNames(rows: readonly Row[]): NotedName[] {
  return rows.map((row) => ({
    id: String(row['id']),
    name: String(row['name']),
    namespace: String(row['namespace']),
  }))
}

/** Whether this role may read the names and the leases, and what time it is. */
export function lookForNames(schema: string): Statement {
  return {
    text: `SELECT (${mayRead('lock_names')})::pg_catalog.text AS readable, (${mayRead('leases')})::pg_catalog.text AS leases,
  ${isoText('pg_catalog.clock_timestamp()')} AS "at"`,
    values: [schema],
  }
}

/** The latest names. */
export function latestNames(
  schema: string,
  namespace: string | undefined,
  limit: number,
): Statement {
  return {
    text: `SELECT n.id, n.name, n.namespace, ${isoText('n.seen_at')} AS "seenAt"
FROM ${quoteIdentifier(schema)}.lock_names AS n
WHERE $1::pg_catalog.text IS NULL OR n.namespace ${eq} $1::pg_catalog.text
ORDER BY n.seen_at DESC, n.name LIMIT $2::pg_catalog.text::pg_catalog.int8`,
    values: [namespace ?? null, String(limit)],
    columns: ['id', 'name', 'namespace', 'seenAt'],
  }
}

/** The last minutes, the latest first. */
export function latestMinutes(
  schema: string,
  namespace: string | undefined,
  minutes: number,
): Statement {
  return {
    text: `SELECT ${isoText('m.minute')} AS minute, m.namespace, m.acquired::pg_catalog.text, m.timeouts::pg_catalog.text, m.busy::pg_catalog.text,
  pg_catalog.to_json(m.wait)::pg_catalog.text AS wait, m.wait_max_ms::pg_catalog.text AS "waitMaxMs",
  pg_catalog.to_json(m.hold)::pg_catalog.text AS hold, m.hold_max_ms::pg_catalog.text AS "holdMaxMs"
FROM ${quoteIdentifier(schema)}.lock_minutes AS m
WHERE m.minute ${gt} (pg_catalog.now() ${minus} pg_catalog.make_interval(mins => $2::pg_catalog.text::pg_catalog.int4))
  AND ($1::pg_catalog.text IS NULL OR m.namespace ${eq} $1::pg_catalog.text)
ORDER BY m.minute DESC, m.namespace`,
    values: [namespace ?? null, String(minutes)],
    columns: [
      'minute',
      'namespace',
      'acquired',
      'timeouts',
      'busy',
      'wait',
      'waitMaxMs',
      'hold',
      'holdMaxMs',
    ],
  }
}

/** What the server makes of texts by `hashtext`, in their order. */
export function hashTexts(texts: readonly string[]): Statement {
  return {
    text: `SELECT t.value AS text, pg_catalog.hashtext(t.value)::pg_catalog.text AS hash
FROM pg_catalog.jsonb_array_elements_text($1::pg_catalog.text::pg_catalog.jsonb) AS t(value)`,
    values: [JSON.stringify(texts)],
    columns: ['text', 'hash'],
  }
}

/** Leases that are held: those whose holder may hold the lock of a leader. */
export function heldLeases(schema: string, limit: number): Statement {
  return {
    text: `SELECT l.scope, l.name FROM ${quoteIdentifier(schema)}.leases AS l
WHERE l.held ORDER BY l.acquired_at DESC LIMIT $1::pg_catalog.text::pg_catalog.int8`,
    values: [String(limit)],
    columns: ['scope', 'name'],
  }
}
