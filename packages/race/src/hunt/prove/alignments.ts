/** Two calls were recorded with values of their own: the one with those that are about the rows of the other. */
import type { KnownTable } from '../../core/model.ts'
import { fieldsOf, withEvery } from '../edges/fields.ts'
import type { Input } from '../model.ts'
import type { Profile } from '../propose/profile.ts'
import { bare } from '../edges/vary.ts'

/** Inputs of the one that are about the same rows as the model: by the columns that both bind, and by names of fields. */
export function alignments(
  one: Profile,
  model: Profile,
  tables: readonly KnownTable[],
): readonly Input[] {
  return [
    byColumns(one, model),
    byRows(one, model, tables),
    byNames(one.call.input, model.call.input),
  ].filter((input) => input !== undefined)
}

function byColumns(one: Profile, model: Profile): Input | undefined {
  let input: Input | undefined
  for (const { table, column, value } of one.bound) {
    const same = model.bound.filter((their) => their.table === table && their.column === column)
    const [their] = same
    if (their === undefined || same.some((another) => another.value === value)) continue
    input = withEvery(input ?? one.call.input, value, their.value)
  }
  return input
}

/** The one names a row by its id, the model by its slug: the id of the row with this slug. */
function byRows(one: Profile, model: Profile, tables: readonly KnownTable[]): Input | undefined {
  let input: Input | undefined
  for (const { table, column, value } of one.bound) {
    const theirs = model.bound.filter((their) => their.table === table)
    const known = tables.find(({ name }) => bare(name) === table)
    if (known?.rows === undefined || theirs.some((their) => their.column === column)) continue
    const at = known.columns.findIndex(({ name }) => name === column)
    const row = known.rows.find((cells) =>
      theirs.some((their) => {
        const place = known.columns.findIndex(({ name }) => name === their.column)
        return isUnique(known, their.column) && cells[place] === their.value
      }),
    )
    const wanted = row?.[at]
    if (wanted === undefined || wanted === null || wanted === value) continue
    input = withEvery(input ?? one.call.input, value, wanted)
  }
  return input
}

function isUnique({ uniques }: KnownTable, column: string): boolean {
  return uniques.some((unique) => unique.length === 1 && unique[0] === column)
}

function byNames(input: Input, model: Input): Input | undefined {
  let aligned: Input | undefined
  for (const { path, value } of fieldsOf(model)) {
    const same = fieldsOf(aligned ?? input).find((field) => field.path === path)
    if (
      same &&
      typeof same.value === typeof value &&
      same.value !== value &&
      !path.startsWith('path')
    ) {
      aligned = same.with(value)
    }
  }
  return aligned
}
