import type { Statement, Value } from '../../core/driver.ts'
import { quoteIdentifier } from './identifier.ts'

function call(schema: string, name: string, types: readonly string[], values: Value[]): Statement {
  const list = types.map((type, at) => `$${at + 1}::text::${type}`).join(', ')
  return {
    text: `SELECT ${quoteIdentifier(schema)}.${name}(${list})::text AS answer`,
    values: values.map((value) => (value === null ? null : String(value))),
  }
}

/** `fallen,more`; see `sql/app/sweep.sql`. */
export function sweepDue(schema: string, most: number): Statement {
  return call(schema, 'sweep', ['integer'], [most])
}

const limitTypes = [
  'smallint',
  'uuid',
  'uuid',
  'uuid',
  'text',
  'text',
  'text',
  'text',
  'bigint',
  'boolean',
  'boolean',
  'text',
  'text',
  'text',
]

/** One value per parameter of `set_limit`; answers like `apply` with one line. */
export function setLimitOf(schema: string, bucket: number, values: Value[]): Statement {
  const { text, values: texts } = call(schema, 'set_limit', limitTypes, [bucket, ...values])
  return { text, values: texts, scopes: [bucket] }
}

/** An audit looks and changes nothing; the server sees to it. */
export const readOnly = 'SET TRANSACTION READ ONLY'

/** In how many ranges of buckets an audit is done, and of which moment it will be. */
export function auditSteps(schema: string): Statement {
  return {
    text: `SELECT ${quoteIdentifier(schema)}.audit_steps()::text AS steps,
  (extract(epoch FROM clock_timestamp()) * 1000)::bigint::text AS moment`,
    values: [],
  }
}

export function auditRange(schema: string, first: number, last: number, most: number): Statement {
  return call(schema, 'audit_range', ['integer', 'integer', 'integer'], [first, last, most])
}

export function emptyDefaultPartition(schema: string): Statement {
  return call(schema, 'empty_default_partition', [], [])
}

export function extendPartitions(schema: string, monthsAhead: number): Statement {
  return call(schema, 'extend_partitions', ['integer'], [monthsAhead])
}

export function upkeepPlan(
  schema: string,
  keepMonths: number | undefined,
  horizonMs: number | undefined,
): Statement {
  return call(schema, 'upkeep_plan', ['integer', 'bigint'], [keepMonths ?? null, horizonMs ?? null])
}

export function forgetOperations(
  schema: string,
  before: string,
  first: number,
  last: number,
): Statement {
  const types = ['timestamptz', 'integer', 'integer']
  return call(schema, 'forget_operations', types, [before, first, last])
}

export function forgetWindows(
  schema: string,
  before: string,
  first: number,
  last: number,
): Statement {
  const types = ['timestamptz', 'integer', 'integer']
  return call(schema, 'forget_windows', types, [before, first, last])
}

/** `month` is its first day, `2026-01-01`. */
export function dropMonth(schema: string, month: string): Statement {
  return call(schema, 'drop_month', ['date'], [month])
}
