import type { Driver, Executor, Transaction } from '../core/driver.ts'
import {
  allQueues,
  type ClaimCount,
  claimCounts,
  countedRows,
  findWork,
  isAffordable,
  liveQueues,
} from '../engines/postgres/observe/claims.ts'
import { withOperators } from '../engines/postgres/sql/own-operators.ts'
import { isHole } from '../core/errors/claim-finding.ts'
import { checkColumns, checkIndexes } from '../engines/postgres/claims/table-check.ts'
import { type ClaimsOptions, leaseSettings } from '../claims/layout.ts'
import { workTable } from '../claims/work-table.ts'
import { lengthText, type Looking, read } from './answer.ts'
import { look } from './look.ts'
import type { Advice, ObservedClaims } from './model.ts'
import { needingTables } from '../engines/postgres/sql/call-function.ts'
import { isTrue } from '../core/is-true.ts'
import type { ClaimFinding } from '../core/errors/error-details.ts'
import type { LeaseSettings } from '../claims/engine.ts'

/** A lease that ended so long ago should have been given back by a worker. */
const strandedMs = 60_000

/** Each table in a look of its own: one that is slow does not hide the others. */
export async function observeClaims<Tx>(
  looking: Looking<Tx>,
  tables: readonly ClaimsOptions[],
): Promise<readonly ObservedClaims[]> {
  const observed: ObservedClaims[] = []
  for (const table of tables) {
    observed.push(await observeTable(looking, leaseSettings(table, undefined)))
  }
  for (const queue of await queuesOf(looking)) {
    const settings = leaseSettings(workTable(looking.schema, queue), undefined)
    observed.push({ ...(await observeTable(looking, settings)), queue })
  }
  return observed
}

async function queuesOf<Tx>({
  driver,
  schema,
  statementTimeoutMs,
}: Looking<Tx>): Promise<readonly string[]> {
  const reading = look(driver, statementTimeoutMs, async (transaction) => {
    const [found] = await transaction.query(findWork(schema))
    if (!isTrue(found?.['readable'])) return []
    const all = allQueues(schema)
    const affordable = isAffordable(await transaction.query(all.explain))
    const rows = await transaction.query(affordable ? all.read : liveQueues(schema))
    return rows.map((row) => String(row['queue']))
  })
  return await needingTables(reading)
}

async function observeTable<Tx>(
  { driver, statementTimeoutMs }: Looking<Tx>,
  settings: LeaseSettings,
): Promise<ObservedClaims> {
  const { schema, table: name } = settings.layout.table
  const table = schema === undefined ? name : `${schema}.${name}`
  return await look(driver, statementTimeoutMs, async (transaction) => {
    const about = await checkColumns(transaction, settings)
    if (about.some(isHole)) {
      return { table, capped: false, advice: about.filter(isHole).map(adviceOnHole) }
    }
    return { table, ...(await countIn(driver, transaction, settings)) }
  })
}

async function countIn<Tx>(
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  settings: LeaseSettings,
): Promise<Omit<ObservedClaims, 'table'>> {
  const counts: Partial<Record<ClaimCount['about'], Counted>> = {}
  const layout = await withOperators(driver, transaction, settings.layout)
  for (const question of claimCounts(layout)) {
    const counted = await countRows(transaction, question)
    if (counted !== undefined) counts[question.about] = counted
  }
  const { ready, claimed, dead, stranded } = counts
  // Last, because it turns off what the planner would need for anything else.
  const indexes = await checkIndexes(driver, transaction, settings)
  return {
    ...(ready === undefined ? {} : { ready: least(ready) }),
    ...(claimed === undefined ? {} : { claimed: least(claimed) }),
    ...(dead === undefined ? {} : { dead: least(dead) }),
    ...(stranded === undefined ? {} : { stranded: least(stranded) }),
    ...ageOf('oldestReadyMs', ready),
    ...ageOf('oldestStrandedMs', stranded),
    capped: [ready, claimed, dead, stranded].some((each) => (each?.count ?? 0) > countedRows),
    advice: [...adviceOnStranded(stranded, settings), ...indexes.map(adviceOnIndex)],
  }
}

interface Counted {
  readonly count: number
  readonly oldestMs: number | null
}

function ageOf<K extends string>(
  name: K,
  counted: Counted | undefined,
): Partial<Record<K, number>> {
  const ms = counted?.oldestMs ?? undefined
  return ms === undefined ? {} : ({ [name]: ms } as Record<K, number>)
}

function least({ count }: Counted): number {
  return Math.min(count, countedRows)
}

/** Undefined where it would read a large table from beginning to end. */
async function countRows(
  executor: Executor,
  { explain, count }: ClaimCount,
): Promise<Counted | undefined> {
  return isAffordable(await executor.query(explain)) ? await read(executor, count) : undefined
}

function adviceOnStranded(stranded: Counted | undefined, { leaseMs }: LeaseSettings): Advice[] {
  const oldestMs = stranded?.oldestMs ?? 0
  if (stranded === undefined || oldestMs < Math.max(strandedMs, leaseMs)) return []
  const rows = stranded.count === 1 ? '1 row is' : `${least(stranded)} rows are`
  return [
    {
      code: 'claim-stranded',
      what: `${rows} claimed by nobody who is alive: the oldest lease ended ${lengthText(oldestMs)} ago.`,
      fix: 'Start a worker by claims.run(), which gives them back, or call claims.recover().',
    },
  ]
}

function adviceOnIndex({ object, what, fix }: ClaimFinding): Advice {
  return { code: 'missing-claim-index', what: `Of ${object}, ${what}`, fix }
}

function adviceOnHole({ object, what, fix }: ClaimFinding): Advice {
  return { code: 'claims-broken', what: `Claims cannot work: ${object} ${what}`, fix }
}
