import { pause } from '../../core/backoff.ts'
import type { Executor } from '../../core/driver.ts'
import type { Blocker } from '../../core/events/event-map.ts'
import { lookupLimitMs } from '../../core/options/wait.ts'
import { within } from '../../core/within.ts'
import { accountLockers, lockedLines } from '../../engines/postgres/ledger/ledger.ts'
import { blockersFrom } from '../../engines/postgres/tx/activity.ts'
import { accountsOf, bucketsOfAll, lineColumns, type Request } from './request.ts'

/** Who has an account for longer than this keeps it. */
const keptMs = 60

/**
 * The accounts of these that one and the same transaction keeps for a while; nothing if there is no answer. Calls of
 * others, and our own other lanes, have them for moments.
 */
export async function keptAccounts(
  executor: Executor,
  schema: string,
  requests: readonly Request[],
): Promise<ReadonlySet<string> | undefined> {
  const names = requests.flatMap(accountsOf)
  const statement = lockedLines(schema, lineColumns(requests), bucketsOfAll(requests))
  const look = async (): Promise<readonly string[]> => {
    const answer = (await executor.query(statement))[0]?.['answer']
    return typeof answer === 'string' ? answer.split(',') : []
  }
  try {
    const before = new Set(await look())
    await pause(keptMs, undefined)
    const kept = (await look()).filter((each) => before.has(each))
    return new Set(kept.map((each) => names[Number.parseInt(each, 10) - 1] as string))
  } catch {
    return undefined
  }
}

/** Who has locked the accounts of a request; nobody if that cannot be said in time. */
export async function whoKeeps(
  executor: Executor,
  schema: string,
  request: Request,
): Promise<readonly Blocker[]> {
  const statement = accountLockers(schema, lineColumns([request]), request.buckets)
  const asking = executor.query({ ...statement, connectWithinMs: lookupLimitMs })
  return blockersFrom((await within(asking, lookupLimitMs)) ?? [])
}
