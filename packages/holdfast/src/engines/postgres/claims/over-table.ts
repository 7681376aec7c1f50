import type { OverTable } from '../../../claims/engine.ts'
import { isHole, tableUnfit } from '../../../core/errors/claim-finding.ts'
import type { Executor } from '../../../core/driver.ts'
import { holdfastError, isHoldfastError } from '../../../core/errors.ts'
import { sqlStateOf, wasRaisedInside } from '../../../core/sql-state.ts'
import { within } from '../../../core/within.ts'
import { missingSchema, schemaMissing } from '../sql/call-function.ts'
import { checkUse } from './table-check.ts'
import type { ClaimFinding } from '../../../core/errors/error-details.ts'

/** How long an error may be held back to say what the table lacks. */
const lookMs = 1_000

type Unfit = 'table-missing' | 'column-missing' | 'privilege-missing'

/** Which findings explain a SQLSTATE. A schema that the role may not use looks like a missing table. */
const explains: Readonly<Record<string, readonly Unfit[]>> = {
  '42P01': ['table-missing'],
  '42703': ['column-missing', 'table-missing'],
  '42501': ['privilege-missing', 'table-missing'],
}

/** What is known of the table without a look at it. */
const unseen: Readonly<Record<Unfit, string>> = {
  'table-missing': 'is not there.',
  'column-missing': 'lacks a column that the claims use.',
  'privilege-missing': 'may not be used by this role.',
}

/**
 * Answers of statements over the caller's table; `beside` is where the table is looked at if one of them fails, another
 * connection if it failed in a transaction.
 *
 * @throws CLAIM_TABLE_UNFIT if the table is why, SCHEMA_MISSING of a table of ours
 */
export async function overTable<T>(
  settings: OverTable,
  beside: Executor,
  asking: Promise<T>,
): Promise<T> {
  try {
    return await asking
  } catch (error) {
    if (settings.isOurs === true) throw ofOurs(error)
    throw (await unfitBy(error, settings, beside)) ?? functionsMissing(error, settings) ?? error
  }
}

/** A function that is newer than the table misses a column of it: the migration is under way. */
function ofOurs(error: unknown): unknown {
  const isOlder = !isHoldfastError(error) && sqlStateOf(error) === '42703'
  return isOlder
    ? holdfastError('SCHEMA_MISSING', { cause: error })
    : (missingSchema(error) ?? error)
}

/** Rates and buckets are looked up by functions of ours, in the same statements. */
function functionsMissing(error: unknown, { layout, perKey }: OverTable): Error | undefined {
  const areUsed = perKey?.rate !== undefined || layout.shard !== undefined
  return areUsed ? schemaMissing(error) : undefined
}

async function unfitBy(
  error: unknown,
  settings: OverTable,
  beside: Executor,
): Promise<Error | undefined> {
  const codes = isHoldfastError(error) ? undefined : explains[sqlStateOf(error) ?? '']
  // Of a trigger, whose tables are not these.
  if (codes === undefined || wasRaisedInside(error)) return undefined
  const { table } = settings.layout.table
  const findings = await within(checkUse(beside, settings), lookMs)
  if (findings === undefined)
    return tableUnfit(table, [unlooked(codes[0] as Unfit, settings)], error)
  const holes = findings.filter(isHole)
  const isWhy = holes.some(({ code }) => (codes as readonly string[]).includes(code))
  return isWhy ? tableUnfit(table, holes, error) : undefined
}

function unlooked(code: Unfit, { layout }: OverTable): ClaimFinding {
  return {
    code,
    object: `table ${layout.table.table}`,
    what: unseen[code],
    fix: 'Call claims.check(), which says what to change; PostgreSQL names it in the cause.',
  }
}
