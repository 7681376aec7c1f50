import type { Catalogue, Relation } from '../catalogue/catalogue.ts'
import type { Held } from '../footprint/held.ts'
import type { StatementShape, TableName } from './statement-shape.ts'

/** Which tables a statement means. */
export interface Names {
  /**
   * Whether the text names everything that the statement reads and writes itself: no functions of the
   * user's, no view, no trigger. Foreign keys are the only thing that is touched without being named.
   */
  readonly plain: boolean
  /** The table that it writes, if it is one and is known for sure. */
  readonly target: Relation | undefined
  /** Tables that it names, without the target unless that is named again. */
  readonly reads: readonly Relation[]
  /** The text means the same in every session, whatever its search_path is. */
  readonly fixed: boolean
}

/**
 * A name with a schema is that table. One without is found by the search_path of the session, which
 * nobody else can ask for; so it is certain only if no other schema has a table of the name, or if
 * the session, which keeps the lock on what it named, has locked only one of them.
 */
export function resolveNames(shape: StatementShape, catalogue: Catalogue, held?: Held): Names {
  const candidates = (name: TableName): readonly Relation[] =>
    (catalogue.named.get(name.name) ?? []).filter(
      ({ schema }) => name.schema === undefined || name.schema === schema,
    )
  const all = shape.target ? [shape.target, ...shape.reads] : shape.reads
  const doubtful = all.some((name) => only(candidates(name), held) === 'doubtful')
  const find = (name: TableName): Relation | undefined => {
    const found = only(candidates(name), held)
    return found === 'doubtful' ? undefined : found
  }
  const found = shape.target && find(shape.target)
  const target = found?.kind === 'table' ? found : undefined
  const reads = shape.reads
    .flatMap((name) => find(name) ?? [])
    .filter(({ kind, active }) => kind === 'table' || active)
  const active = [found, ...reads].some((relation) => relation?.active)
  const temporary = all.some(({ schema }) => schema?.startsWith('pg_temp'))
  return {
    plain:
      shape.kind === 'query' &&
      !doubtful &&
      !temporary &&
      !active &&
      !runsCode(shape, catalogue) &&
      !(target && cascades(shape, target) && target.reach.active),
    target,
    reads,
    fixed: !temporary && all.every((name) => candidates(name).length <= 1),
  }
}

function only(candidates: readonly Relation[], held?: Held): Relation | undefined | 'doubtful' {
  const [first, second] = candidates
  if (!second) return first
  // Of views and temporary tables no lock tells.
  if (!held || candidates.some(({ kind }) => kind !== 'table')) return 'doubtful'
  const [locked, another] = candidates.filter(({ object }) => held.relations.has(object))
  return locked && !another ? locked : 'doubtful'
}

/** Functions of the server that run SQL which they get as a value. */
export const runsText: RegExp =
  /^(?:(?:query|cursor|table|schema|database)_to_xml|ts_stat$|ts_rewrite$|crosstab|connectby$)/

// They reach into other sessions, or out of the tables.
const reaching = /^(dblink|pg_terminate|pg_cancel|pg_notify|lo_)/

function runsCode(shape: StatementShape, { code }: Catalogue): boolean {
  return (
    code.conversion.size > 0 ||
    [...shape.calls].some(
      (call) => reaching.test(call) || runsText.test(call) || code.function.has(call),
    ) ||
    [...shape.operators].some((operator) => code.operator.has(operator)) ||
    [...shape.columnNames].some((column) => code.attribute.has(column))
  )
}

/** Whether foreign keys of others may make it touch their tables. */
export function cascades(
  { write, assigned, onConflict }: StatementShape,
  target: Relation,
): boolean {
  if (write === 'delete' || write === 'merge') return true
  if (write === 'insert' && !onConflict) return false
  return [...target.referenced].some((column) => assigned.has(column))
}

/** Whether foreign keys cannot make the statement touch now this and now that. */
export function isSteady(shape: StatementShape, target: Relation | undefined): boolean {
  if (shape.target === undefined) return !shape.writesSeveral
  return target !== undefined && target.parents.size === 0 && !cascades(shape, target)
}
