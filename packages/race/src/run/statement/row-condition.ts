/** Which columns a statement fixes to one value, as far as its text tells. */
import {
  listOf,
  nodeOf,
  type ParsedStatement,
  stringsOf,
  textOf,
  type Tree,
} from './statement-tree.ts'

/** Types whose values can be compared by their text. */
export type Family = 'integer' | 'text' | 'uuid'

/** A value as the statement has it. */
export interface GivenValue {
  readonly source:
    | { readonly parameter: number }
    | { readonly number: string }
    | { readonly string: string }
  /** Of a cast around it. */
  readonly cast: Family | undefined
}

/** A statement on one table and nothing else, with the values that say which rows it is about. */
export interface RowCondition {
  /** `column = value`, at the top level of WHERE or as the only row of an INSERT. */
  readonly equals: ReadonlyMap<string, GivenValue>
  /** The values of an INSERT that lists no columns, in the order of the table. */
  readonly inOrder: readonly (GivenValue | undefined)[] | undefined
}

/** Undefined if the statement does more than WHERE says: joins, WITH, FROM, ON CONFLICT. */
export function rowConditionOf({ kind, tree }: ParsedStatement): RowCondition | undefined {
  if (tree['withClause']) return undefined
  switch (kind) {
    case 'SelectStmt': {
      const [from, more] = listOf(tree['fromClause'])
      if (more || !nodeOf(from, 'RangeVar') || tree['op'] !== 'SETOP_NONE') return undefined
      return conditionOf(tree['whereClause'])
    }
    case 'UpdateStmt':
      return tree['fromClause'] ? undefined : conditionOf(tree['whereClause'])
    case 'DeleteStmt':
      return tree['usingClause'] ? undefined : conditionOf(tree['whereClause'])
    case 'InsertStmt':
      return insertedRow(tree)
    default:
      return undefined
  }
}

function conditionOf(where: unknown): RowCondition {
  const equals = new Map<string, GivenValue>()
  addEqualities(where, equals)
  return { equals, inOrder: undefined }
}

function addEqualities(where: unknown, into: Map<string, GivenValue>): void {
  const all = nodeOf(where, 'BoolExpr')
  if (all?.['boolop'] === 'AND_EXPR') {
    for (const part of listOf(all['args'])) addEqualities(part, into)
  }
  const comparison = nodeOf(where, 'A_Expr')
  if (comparison?.['kind'] !== 'AEXPR_OP' || stringsOf(comparison['name']).join('.') !== '=') return
  const sides = [comparison['lexpr'], comparison['rexpr']]
  for (const [one, other] of [sides, sides.toReversed()]) {
    const column = stringsOf(nodeOf(one, 'ColumnRef')?.['fields']).at(-1)
    const value = valueOf(other)
    if (column && value && !into.has(column)) into.set(column, value)
  }
}

/** The row of INSERT … VALUES with one row. */
function insertedRow(tree: Tree): RowCondition | undefined {
  // OVERRIDING may put another value in the place of the one that is given.
  if (tree['onConflictClause'] || tree['override'] !== 'OVERRIDING_NOT_SET') return undefined
  const [row, more] = listOf(nodeOf(tree['selectStmt'], 'SelectStmt')?.['valuesLists'])
  if (!row || more) return undefined
  const values = listOf(nodeOf(row, 'List')?.['items']).map(valueOf)
  const columns = insertedColumns(tree)
  if (!columns) return { equals: new Map(), inOrder: values }
  const equals = new Map<string, GivenValue>()
  columns.forEach((column, index) => {
    const value = values[index]
    if (value) equals.set(column, value)
  })
  return { equals, inOrder: undefined }
}

/** Columns that an INSERT lists; undefined if it lists none. */
export function insertedColumns(tree: Tree): string[] | undefined {
  const columns = listOf(tree['cols']).map((one) => textOf(nodeOf(one, 'ResTarget'), 'name'))
  return columns.length > 0 ? columns : undefined
}

/** Places in the rows of an INSERT that have DEFAULT or nextval() in every row. */
export function drawnPlaces(tree: Tree): ReadonlySet<number> {
  const source = nodeOf(tree['selectStmt'], 'SelectStmt')
  const given = listOf(source?.['valuesLists']).map((row) => listOf(nodeOf(row, 'List')?.['items']))
  const targets = listOf(source?.['targetList']).map((one) => nodeOf(one, 'ResTarget')?.['val'])
  const [first = [], ...others] = given.length > 0 ? given : [targets]
  return new Set(
    [...first.keys()].filter((place) => [first, ...others].every((row) => isDrawn(row[place]))),
  )
}

function isDrawn(node: unknown): boolean {
  if (nodeOf(node, 'SetToDefault')) return true
  return stringsOf(nodeOf(node, 'FuncCall')?.['funcname']).at(-1) === 'nextval'
}

function valueOf(node: unknown): GivenValue | undefined {
  const parameter = nodeOf(node, 'ParamRef')?.['number']
  if (typeof parameter === 'number') return { source: { parameter }, cast: undefined }
  const constant = nodeOf(node, 'A_Const')
  if (constant) return constantOf(constant)
  const cast = nodeOf(node, 'TypeCast')
  const family = familyOf(cast?.['typeName'])
  const value = family && valueOf(cast?.['arg'])
  // Of a cast of a cast only the outer one would be known.
  return value && value.cast === undefined ? { ...value, cast: family } : undefined
}

function constantOf(constant: Tree): GivenValue | undefined {
  const { ival, fval, sval } = constant as Record<string, Tree | undefined>
  if (ival) return { source: { number: String(Number(ival['ival'] ?? 0)) }, cast: undefined }
  if (fval) return { source: { number: textOf(fval, 'fval') }, cast: undefined }
  return sval && { source: { string: textOf(sval, 'sval') }, cast: undefined }
}

function familyOf(type: unknown): Family | undefined {
  const { names, typmods, arrayBounds, setof } = (type ?? {}) as Tree
  if (typmods || arrayBounds || setof) return undefined
  const parts = stringsOf(names)
  if (parts.length > 1 && parts[0] !== 'pg_catalog') return undefined
  return families.get(parts.at(-1) ?? '')
}

/** By the names of the types in `pg_catalog`. */
export const families: ReadonlyMap<string, Family> = new Map([
  ['int2', 'integer'],
  ['int4', 'integer'],
  ['int8', 'integer'],
  ['text', 'text'],
  ['varchar', 'text'],
  ['uuid', 'uuid'],
])
