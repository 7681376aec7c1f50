import type { ColumnValue } from '../../../claims/engine.ts'
import type { Statement } from '../../../core/driver.ts'
import { columnOf, inStatus, type Waiting } from '../claims/claims.ts'
import { quoteIdentifier, tableText } from '../sql/identifier.ts'
import { eq, lt, minus, times } from '../sql/operators.ts'

/** Counting ends here: whoever has more has the same problem. */
const most = 1001

/** Open holds that should have ended so long ago: how many, and the age of the oldest. */
export function overdueHolds(schema: string, ms: number): Statement {
  return counted(
    `SELECT expires_at AS since FROM ${quoteIdentifier(schema)}.open_holds
  WHERE expires_at ${lt} ${ago} ORDER BY expires_at LIMIT ${most}`,
    ms,
  )
}

/** What books them, here and now. */
export function sweepText(schema: string): string {
  return `SELECT ${quoteIdentifier(schema)}.sweep(10000);`
}

/** Claims whose lease ended so long ago and that nobody has taken up again. */
export function strandedClaims(
  layout: Waiting & { readonly claimed: ColumnValue; readonly leaseUntil: string },
  ms: number,
): Statement {
  const leaseUntil = columnOf(layout.leaseUntil)
  return counted(
    `SELECT ${leaseUntil} AS since FROM ${tableText(layout.table)} AS "#row"
  WHERE ${inStatus(layout, layout.claimed)} AND ${leaseUntil} ${lt} ${ago}
  ORDER BY ${leaseUntil} LIMIT ${most}`,
    ms,
  )
}

/** Ticks that are at work past their lease, or whose next attempt is due for so long; not of paused ones. */
export function stuckTicks(schema: string, ms: number): Statement {
  const space = quoteIdentifier(schema)
  return {
    text: `
SELECT tick.schedule AS schedule, tick.state AS state,
       (extract(epoch FROM pg_catalog.now() ${minus} tick.lease_until) ${times} 1000)::pg_catalog.int8::pg_catalog.text AS ms
FROM ${space}.ticks AS tick
JOIN ${space}.schedules AS schedule ON schedule.name ${eq} tick.schedule AND schedule.paused_at IS NULL
WHERE tick.state ${eq} ANY ('{running,waiting}') AND tick.lease_until ${lt} ${ago}
ORDER BY tick.lease_until LIMIT 5`,
    values: [String(ms)],
  }
}

/** Tables of the schema, partitions too, that autovacuum was told to pass over. */
export function unvacuumedTables(schema: string): Statement {
  return {
    text: `
SELECT relname::pg_catalog.text AS name FROM pg_catalog.pg_class
JOIN pg_catalog.pg_namespace AS space ON space.oid ${eq} relnamespace AND nspname ${eq} $1::pg_catalog.text::pg_catalog.name
CROSS JOIN LATERAL pg_catalog.pg_options_to_table(reloptions) AS option
WHERE option_name ${eq} 'autovacuum_enabled' AND pg_catalog.lower(option_value) ${eq} ANY ('{false,off,no,0,f,n}')
ORDER BY relname`,
    values: [schema],
  }
}

export function vacuumAgain(schema: string, table: string): string {
  return `ALTER TABLE ${tableText({ schema, table })} RESET (autovacuum_enabled);`
}

/** The counts of rate limits, if a crash empties them. */
export function unloggedLimits(schema: string): Statement {
  return {
    text: `
SELECT relname::pg_catalog.text AS name FROM pg_catalog.pg_class
JOIN pg_catalog.pg_namespace AS space ON space.oid ${eq} relnamespace AND nspname ${eq} $1::pg_catalog.text::pg_catalog.name
WHERE relname ${eq} 'rate_limit' AND relpersistence ${eq} 'u'`,
    values: [schema],
  }
}

export function logAgain(schema: string, table: string): string {
  return `ALTER TABLE ${tableText({ schema, table })} SET LOGGED;`
}

/** A moment that an index can be asked for. */
const ago = `(pg_catalog.now() ${minus} ($1::pg_catalog.text::pg_catalog.int8 ${times} interval '1 millisecond'))`

function counted(rows: string, ms: number): Statement {
  return {
    text: `
SELECT pg_catalog.count(*)::pg_catalog.text AS found,
       (extract(epoch FROM pg_catalog.now() ${minus} pg_catalog.min(since)) ${times} 1000)::pg_catalog.int8::pg_catalog.text AS ms
FROM (${rows}) AS late`,
    values: [String(ms)],
  }
}
