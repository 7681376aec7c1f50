import { ledgerCall } from './ledger-call.ts'
import type { Statement, Value } from '../../core/driver.ts'
import { quoteIdentifier } from './identifier.ts'

/** `fallen,more`; see `sql/app/sweep.sql`. */
export function sweepDue(schema: string, most: number): Statement {
  return ledgerCall(schema, 'sweep', ['integer'], [most])
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
  'boolean',
]

/** One value per parameter of `set_limit`; answers like `apply` with one line. */
export function setLimitOf(schema: string, bucket: number, values: Value[]): Statement {
  const { text, values: texts } = ledgerCall(schema, 'set_limit', limitTypes, [bucket, ...values])
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
  return ledgerCall(schema, 'audit_range', ['integer', 'integer', 'integer'], [first, last, most])
}

export function forgetGrants(schema: string, first: number, last: number): Statement {
  return ledgerCall(schema, 'forget_grants', ['integer', 'integer'], [first, last])
}

export function emptyDefaultPartition(schema: string): Statement {
  return ledgerCall(schema, 'empty_default_partition', [], [])
}

export function extendPartitions(schema: string, monthsAhead: number): Statement {
  return ledgerCall(schema, 'extend_partitions', ['integer'], [monthsAhead])
}

export function upkeepPlan(
  schema: string,
  keepMonths: number | undefined,
  horizonMs: number | undefined,
): Statement {
  return ledgerCall(
    schema,
    'upkeep_plan',
    ['integer', 'bigint'],
    [keepMonths ?? null, horizonMs ?? null],
  )
}

export function forgetOperations(
  schema: string,
  before: string,
  first: number,
  last: number,
): Statement {
  const types = ['timestamptz', 'integer', 'integer']
  return ledgerCall(schema, 'forget_operations', types, [before, first, last])
}

export function forgetWindows(
  schema: string,
  before: string,
  first: number,
  last: number,
): Statement {
  const types = ['timestamptz', 'integer', 'integer']
  return ledgerCall(schema, 'forget_windows', types, [before, first, last])
}

/** `month` is its first day, `2026-01-01`. */
export function dropMonth(schema: string, month: string): Statement {
  return ledgerCall(schema, 'drop_month', ['date'], [month])
}
