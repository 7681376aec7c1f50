import type { Enqueued, WorkRow } from '../../../claims/engine.ts'
import type { Driver } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { sqlStateOf } from '../../../core/sql-state.ts'
import { assertNotNested } from '../../../tx/run.ts'
import { schemaMissing } from '../sql/call-function.ts'
import { aloneOn, joinedTo } from './sending.ts'
import { enqueueWork } from './work.ts'

const undefinedColumn = '42703'

/** Adds to the table `work`, all in one call. */
export async function addWork<Tx>(
  driver: Driver<Tx>,
  tx: Tx | undefined,
  schema: string,
  work: readonly WorkRow[],
  channel: string | undefined,
): Promise<readonly Enqueued[]> {
  const itemsJson = `[${work.map(itemJson).join(',')}]`
  const scopes = work.map(({ scope }) => scope)
  const statement = enqueueWork(schema, itemsJson, channel, scopes)
  try {
    if (tx === undefined) assertNotNested(driver)
    const on = tx === undefined ? aloneOn(driver) : await joinedTo(driver, tx)
    const [row] = await on.query(statement)
    const answers = JSON.parse(String(row?.['answer'])) as Answer[]
    return answers.map((answer, at) => enqueued(answer, work[at]?.whileRunning !== undefined))
  } catch (error) {
    // The function is newer than the table: the migration is under way.
    if (sqlStateOf(error) === undefinedColumn)
      throw holdfastError('SCHEMA_MISSING', { cause: error })
    throw schemaMissing(error) ?? error
  }
}

/** As `sql/app/enqueue_work.sql` reads it. */
function itemJson(work: WorkRow): string {
  const { payloadJson, uniqueKey, delayMs, runAt, maxAttempts, whileRunning, ...rest } = work
  const item = JSON.stringify({
    ...rest,
    unique_key: uniqueKey,
    delay_ms: delayMs,
    run_at: runAt,
    max_attempts: maxAttempts,
    while_running: whileRunning,
  })
  return `{"payload":${payloadJson},${item.slice(1)}`
}

type Answer = readonly [id: string | null, added: boolean, follow?: 'after' | 'replaced' | null]

/** A function of an older version does not know of `whileRunning`, and nobody would run it. */
function enqueued([id, added, follow]: Answer, asksToFollow: boolean): Enqueued {
  if (asksToFollow && !added && follow === undefined) throw holdfastError('SCHEMA_MISSING')
  return {
    id: id ?? undefined,
    added,
    ...(follow === undefined || follow === null ? {} : { follow }),
  }
}
