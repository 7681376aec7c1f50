import type { Footprint } from '../../core/model.ts'
import type { Unit } from '../../gate/unit.ts'
import type { Relation } from '../catalogue/catalogue.ts'
import { cascades, type Names } from '../statement/names.ts'
import type { Family, GivenValue, RowCondition } from '../statement/row-condition.ts'
import type { StatementShape } from '../statement/statement-shape.ts'
import type { Touched } from './touches.ts'

/**
 * What a statement touched, of the table that it is about only the row whose whole key it gives.
 * Rows are told apart by the columns that name them, so it must not change those, nor meet rows with
 * other keys in any other way; in doubt it is the whole table.
 */
export function narrowed(
  touched: Touched,
  shape: StatementShape,
  names: Names,
  unit: Unit,
  isolation: Footprint['isolation'],
): Touched {
  // What SERIALIZABLE notes as read may be the page or the table, for want of memory.
  if (!touched.plain || !shape.rows || isolation === 'serializable') return touched
  const relation = names.target ?? names.reads[0]
  const key = relation && keyOf(relation, shape)
  if (!key) return touched
  const row = rowObject(relation, key, givenValues(shape.rows, relation), shape, unit)
  if (row === undefined) return touched
  const { object } = relation
  return {
    ...touched,
    touches: touched.touches.map((touch) =>
      touch.object === object && oneRow.has(touch.mode) ? { ...touch, object: row } : touch,
    ),
    // Rows that are appended have keys that the text does not tell.
    writes: touched.touches.some((touch) => touch.object === object && !oneRow.has(touch.mode))
      ? touched.writes
      : touched.writes.map((written) => (written === object ? row : written)),
  }
}

/** Whether the statement has a value for every column of a key of the table. */
export function givesKey({ rows }: StatementShape, relation: Relation | undefined): boolean {
  return (
    rows !== undefined &&
    (relation?.keys.some((columns) => columns.every((column) => rows.equals.has(column))) ?? false)
  )
}

const oneRow: ReadonlySet<string> = new Set(['read', 'lock', 'insert', 'attempt'])

/** The key that names the row, if the statement cannot meet other rows of the table. */
function keyOf(relation: Relation, shape: StatementShape): readonly string[] | undefined {
  const { equals, inOrder } = shape.rows as RowCondition
  const key = relation.keys.find((columns) =>
    columns.every((column) => equals.has(column) || inOrder),
  )
  if (!key || shape.write === undefined) return key
  // Its own rows may refer to others of the same table.
  if (relation.parents.has(relation.object)) return undefined
  if (shape.write === 'insert') {
    const alone = [...relation.guarded].every((column) => key.includes(column))
    return alone && relation.uniques.length === 1 && relation.parents.size === 0 ? key : undefined
  }
  const { touched, checked } = relation.reach
  const returns = touched.has(relation.object) || checked.has(relation.object)
  if (cascades(shape, relation) && returns) return undefined
  return [...relation.guarded, ...key].some((column) => shape.assigned.has(column))
    ? undefined
    : key
}

function givenValues(
  { equals, inOrder }: RowCondition,
  relation: Relation,
): ReadonlyMap<string, GivenValue> {
  if (!inOrder) return equals
  const columns = [...relation.columns.keys()]
  return new Map(
    inOrder.flatMap((value, index): [string, GivenValue][] => {
      const column = columns[index]
      return value && column !== undefined ? [[column, value]] : []
    }),
  )
}

/** `public.seats#id=1` */
function rowObject(
  relation: Relation,
  key: readonly string[],
  given: ReadonlyMap<string, GivenValue>,
  shape: StatementShape,
  unit: Unit,
): string | undefined {
  const values: string[] = []
  for (const column of key) {
    const family = relation.columns.get(column)
    const value = given.get(column)
    const text = family && value && textOf(value, family, shape, unit)
    if (text === undefined || !plainName.test(column)) return undefined
    values.push(text)
  }
  // Signs that separate the parts of an object's name.
  if (/[#=]/.test(relation.object)) return undefined
  return `${relation.object}#${key.join(',')}=${values.join(',')}`
}

const plainName = /^\w+$/

/** The value as it is written in one way only; undefined in doubt. */
function textOf(
  { source, cast }: GivenValue,
  family: Family,
  { parameters }: StatementShape,
  unit: Unit,
): string | undefined {
  if (cast !== undefined && cast !== family) return undefined
  if ('number' in source) return family === 'integer' ? canonical(source.number, family) : undefined
  if ('string' in source) return canonical(source.string, family)
  // Of several bound statements nobody knows whose parameters these are.
  if (unit.parameters.length !== Math.max(...parameters.keys())) return undefined
  const text = unit.parameters[source.parameter - 1]
  const type = unit.parameterTypes[source.parameter - 1]
  if (text === undefined || text === null || type === undefined) return undefined
  const known = typesOf[family].has(type) || (cast !== undefined && typesOf.text.has(type))
  // The server chooses the type by the first place where the parameter is used.
  const chosen = type === 0 && parameters.get(source.parameter) === 1
  return known || chosen ? canonical(text, family) : undefined
}

/** Object ids of the types: int8, int2, int4; text, varchar; uuid. */
const typesOf: Readonly<Record<Family, ReadonlySet<number>>> = {
  integer: new Set([20, 21, 23]),
  text: new Set([25, 1043]),
  uuid: new Set([2950]),
}

function canonical(text: string, family: Family): string | undefined {
  switch (family) {
    case 'integer':
      return /^(?:0|-?[1-9]\d*)$/.test(text) ? text : undefined
    case 'uuid':
      return /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text)
        ? text.toLowerCase()
        : undefined
    case 'text':
      // A column with a limit cuts blanks off.
      return text === '' || text !== text.trimEnd() ? undefined : text
  }
}
