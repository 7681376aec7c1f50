import { ledgerCall } from './call.ts'
import type { Statement, Value } from '../../../core/driver.ts'
import { quoteIdentifier } from '../sql/identifier.ts'
import type { ParameterType } from '../sql/parameter.ts'
import { times } from '../sql/operators.ts'

/** `fallen,more`; see `sql/app/sweep.sql`. */
export function sweepDue(schema: string, most: number): Statement {
  return ledgerCall(schema, 'sweep', ['int4'], [most])
}

const limitTypes: readonly ParameterType[] = [
  'int2',
  'uuid',
  'uuid',
  'uuid',
  'text',
  'text',
  'text',
  'text',
  'int8',
  'bool',
  'bool',
  'text',
  'text',
  'text',
  'bool',
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
    text: `SELECT ${quoteIdentifier(schema)}.audit_steps()::pg_catalog.text AS steps,
  (extract(epoch FROM pg_catalog.clock_timestamp()) ${times} 1000)::bigint::pg_catalog.text AS moment`,
    values: [],
  }
}

export function auditRange(schema: string, first: number, last: number, most: number): Statement {
  return ledgerCall(schema, 'audit_range', ['int4', 'int4', 'int4'], [first, last, most])
}

export function forgetGrants(schema: string, first: number, last: number): Statement {
  return ledgerCall(schema, 'forget_grants', ['int4', 'int4'], [first, last])
}

export function emptyDefaultPartition(schema: string): Statement {
  return ledgerCall(schema, 'empty_default_partition', [], [])
}

export function extendPartitions(schema: string, monthsAhead: number): Statement {
  return ledgerCall(schema, 'extend_partitions', ['int4'], [monthsAhead])
}

export function upkeepPlan(
  schema: string,
  keepMonths: number | undefined,
  horizonMs: number | undefined,
): Statement {
  return ledgerCall(
    schema,
    'upkeep_plan',
    ['int4', 'int8'],
    [keepMonths ?? null, horizonMs ?? null],
  )
}

export function forgetOperations(
  schema: string,
  before: string,
  first: number,
  last: number,
): Statement {
  const types: readonly ParameterType[] = ['timestamptz', 'int4', 'int4']
  return ledgerCall(schema, 'forget_operations', types, [before, first, last])
}

export function forgetWindows(
  schema: string,
  before: string,
  first: number,
  last: number,
): Statement {
  const types: readonly ParameterType[] = ['timestamptz', 'int4', 'int4']
  return ledgerCall(schema, 'forget_windows', types, [before, first, last])
}

/** `month` is its first day, `2026-01-01`. */
export function dropMonth(schema: string, month: string): Statement {
  return ledgerCall(schema, 'drop_month', ['date'], [month])
}
