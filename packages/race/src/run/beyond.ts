/**
 * What a statement can see or do that no lock of its session tells: other sessions as they are at this moment, other
 * databases, sequences, large objects. Such a step depends on everything, and no order is proven by it.
 */
import type { Catalogue } from './catalogue.ts'
import { bodyOf, type Routine } from './routine.ts'
import { shapeOf, type StatementShape, type TableName } from './statement-shape.ts'

/** Views of the server that show what others do now, committed or not. */
const live =
  /^pg_(locks|prepared_xacts|sequences|cursors|stat_(activity|.*_tables|.*_indexes|database.*|xact_.*|statements|progress_.*|user_functions|get_.*|io|wal.*)|statio_.*)$/

/** Functions that do the same, that reach into other sessions, or into other databases. */
const reaching =
  /^(dblink|pg_(blocking_pids|safe_snapshot_blocking_pids|terminate_backend|cancel_backend|lock_status|stat_get_|stat_clear|prepared_xact|sequence_last_value|current_snapshot|snapshot_|current_wal|wal_|last_committed|xact_|export_snapshot)|txid_|setval$|lo_|loread$|lowrite$)/

/** In the text of a function, where names are not told apart from other words. */
const inCode =
  /\b(dblink\w*|pg_locks|pg_stat_\w+|pg_prepared_xacts|pg_sequences|pg_sequence_last_value|pg_blocking_pids|pg_(terminate|cancel)_backend|setval|lo_\w+|last_value)\b/i

/** What it looks at, in words for a note; undefined if its locks tell all. */
export function beyond(shape: StatementShape, catalogue: Catalogue): string | undefined {
  const call = [...shape.calls].find((name) => reaching.test(name))
  if (call !== undefined) return `${call}()`
  const views = shape.reads.filter(
    ({ schema, name }) => live.test(name) && (schema ?? 'pg_catalog') === 'pg_catalog',
  )
  // Who asks for its own session only sees what it has done itself.
  if (views.length > shape.ownLooks) return views[0]?.name
  return shape.reads.find((read) => isSequence(read, catalogue))?.name
}

/** The same of the functions and triggers that it runs. */
export function beyondInside(shape: StatementShape, catalogue: Catalogue): string | undefined {
  return inRoutines([...shape.calls, ...triggersOf(shape, catalogue)], catalogue)
}

function isSequence({ schema, name }: TableName, { named }: Catalogue): boolean {
  const found = named.get(name) ?? []
  return found.some(
    (one) => one.kind === 'sequence' && (schema === undefined || schema === one.schema),
  )
}

function triggersOf({ target }: StatementShape, { named }: Catalogue): readonly string[] {
  const tables = target ? (named.get(target.name) ?? []) : []
  return tables.flatMap(({ calls }) => calls.flatMap(({ name }) => name ?? []))
}

/** The code that these run, and what that calls. */
function inRoutines(open: string[], catalogue: Catalogue): string | undefined {
  const seen = new Set<string>()
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (seen.has(name)) continue
    seen.add(name)
    for (const routine of catalogue.routines.get(name) ?? []) {
      const far = farIn(routine, catalogue)
      if (far !== undefined) return `${far} in ${name}()`
      if (routine.body !== null) open.push(...namesIn(routine.body, catalogue))
    }
  }
  return undefined
}

/** Where a statement of it is made at run time, the words of the whole text tell. */
function farIn(routine: Routine, catalogue: Catalogue): string | undefined {
  for (const text of bodyOf(routine).statements) {
    const far =
      text === undefined ? inCode.exec(routine.body ?? '')?.[0] : beyond(shapeOf(text), catalogue)
    if (far !== undefined) return far
  }
  return undefined
}

const mentioned = new WeakMap<Catalogue, Map<string, readonly string[]>>()

/** Routines whose names stand in this text. */
function namesIn(body: string, catalogue: Catalogue): readonly string[] {
  const memory = mentioned.get(catalogue) ?? new Map<string, readonly string[]>()
  mentioned.set(catalogue, memory)
  let names = memory.get(body)
  if (!names) {
    const words = new Set(body.toLowerCase().match(/[\w$]+/g) ?? [])
    names = [...catalogue.routines.keys()].filter((name) => words.has(name.toLowerCase()))
    memory.set(body, names)
  }
  return names
}
