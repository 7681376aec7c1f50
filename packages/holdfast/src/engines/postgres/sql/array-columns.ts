import type { ArrayLiteral } from './array-literal.ts'
import { parameters, type ParameterType } from './parameter.ts'

/** Lines by columns: one array literal for each parameter of a function. */
export interface ArrayColumns {
  /** Null for a column of nulls. */
  readonly values: readonly (string | null)[]
  /** In some column there are nulls beside values. */
  readonly isMixed: boolean
}

export function arrayColumns(literals: readonly ArrayLiteral[]): ArrayColumns {
  return {
    values: literals.map((each) => each.literal()),
    isMixed: literals.some(({ isMixed }) => isMixed),
  }
}

/** How a function is called on columns. */
export interface ColumnsCall {
  /** The arguments. */
  readonly args: string
  /** What has to stand behind the columns of the answer, and behind those a FROM. */
  readonly restored: string
  readonly from: string
}

/**
 * With `array_nulls = off` PostgreSQL reads a NULL in an array literal as the text. No literal can say otherwise, so
 * that the setting is put right before they are read, and put back afterwards: FROM is evaluated before the columns,
 * OFFSET keeps it a step of its own, and columns are evaluated from left to right. As parameters of their own type they
 * would be read before all that.
 *
 * Without such nulls nothing depends on the setting, and there are no casts: there is one function of that name, and each
 * cast would be looked up in every call.
 */
export function columnsCall(types: readonly ParameterType[], isMixed: boolean): ColumnsCall {
  if (!isMixed)
    return { args: types.map((_, at) => `$${at + 1}`).join(', '), restored: '', from: '' }
  return {
    args: parameters(types),
    restored: ", pg_catalog.set_config('array_nulls', reading.was, true) AS restored",
    from: ` FROM (SELECT pg_catalog.current_setting('array_nulls') AS was, pg_catalog.set_config('array_nulls', 'on', true) AS set OFFSET 0) AS reading`,
  }
}
