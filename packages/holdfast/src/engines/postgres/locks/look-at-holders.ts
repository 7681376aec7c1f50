import type { Executor, Row, Statement } from '../../../core/driver.ts'
import { lookupLimitMs } from '../../../core/options/wait.ts'
import { within } from '../../../core/within.ts'
import type { Contended } from '../../../locks/engine.ts'
import { blockersFrom } from '../tx/activity.ts'
import { lockHolders } from './lock-holders.ts'
import { clockMs, endedBySetting } from '../tx/wait-limit.ts'
import type { Blocker } from '../../../core/events/event-map.ts'
import type { EndedBy } from '../../../core/errors/error-details.ts'

/** A wait that has ended without a lock. */
export interface EndedWait {
  readonly limitMs: number | undefined
  readonly yields: boolean
  readonly budgetMs: number | undefined
  readonly waitedMs: number
  /** Its statement was cancelled: by statement_timeout or by somebody. */
  readonly canceled?: { readonly message: string } | undefined
  /** The timeouts that were in force, if they were asked for in the transaction itself. */
  readonly own?: Row | undefined
}

/**
 * Asks who holds these locks. A look that is late is not sent any more. One in the transaction itself, `inside`, is
 * waited for: whatever comes next has to wait for it as well, and its body would be told of a statement under way.
 */
export async function lookAtHolders(
  executor: Executor,
  wanted: Parameters<typeof lockHolders>[0],
  wait: EndedWait,
  inside = false,
): Promise<Contended> {
  const statement = inTheWay(wanted, wait.waitedMs)
  const looking = inside
    ? executor.query(statement).catch(() => undefined)
    : inTime(executor, statement)
  const rows = (await looking) ?? []
  return { blockers: foundIn(rows), endedBy: endedBy(wait, wait.own ?? rows[0]) }
}

/** The same without a wait; nothing if there is no answer in time. */
export async function holdersOf(
  executor: Executor,
  wanted: Parameters<typeof lockHolders>[0],
): Promise<readonly Blocker[] | undefined> {
  const rows = await inTime(executor, inTheWay(wanted, 0))
  return rows === undefined ? undefined : foundIn(rows)
}

/** Who waits for longer came before, by more than the look may be late. */
function inTheWay(wanted: Parameters<typeof lockHolders>[0], waitedMs: number): Statement {
  return lockHolders(wanted, waitedMs + lookupLimitMs)
}

async function inTime(
  executor: Executor,
  statement: Statement,
): Promise<readonly Row[] | undefined> {
  const asking = executor.query({ ...statement, connectWithinMs: lookupLimitMs })
  return await within(asking, lookupLimitMs)
}

function foundIn(rows: readonly Row[]): readonly Blocker[] {
  return blockersFrom(rows.filter(({ pid }) => pid !== null))
}

/**
 * Which limit it was, where a statement ends its wait before whatever would end it. Settings are those of
 * where it was asked; one that the caller made for a transaction that is lost now cannot be read any more.
 */
function endedBy(
  { limitMs = Infinity, yields, budgetMs, waitedMs, canceled }: EndedWait,
  row: Row | undefined,
): EndedBy | undefined {
  if (canceled !== undefined) {
    const bySetting = endedBySetting(waitedMs, { statement_ms: row?.['statement_ms'] })
    // A server that speaks English says it itself; else it takes a second connection to know.
    return /statement timeout/i.test(canceled.message) ? 'statement_timeout' : bySetting
  }
  if (waitedMs >= limitMs - clockMs) return 'wait'
  // What a call says itself stands in the place of lock_timeout, so that one setting is left to end it sooner.
  if (!yields && budgetMs === undefined) return 'statement_timeout'
  return endedBySetting(waitedMs, row) ?? (budgetMs === undefined ? undefined : 'client')
}
