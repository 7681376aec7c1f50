import { pause } from '../core/backoff.ts'
import { transactionsHere } from '../engines/postgres/shards/moves.ts'
import type { MoveSide } from './move-side.ts'
import type { Blocker } from '../core/events/event-map.ts'

/** A transaction that is open. */
interface OpenTransaction extends Blocker {
  /** Its virtual id, or the word and name of a prepared one. */
  readonly transaction: string
}

const lookEveryMs = 10
const preparedWord = 'prepared '

/**
 * Waits until every transaction has ended that is open now, in this database of the server. Whoever begins
 * later sees what was committed before this was called. Answers who is left when the time is up.
 */
export async function untilOlderEnded<Tx>(
  side: MoveSide<Tx>,
  ms: number,
): Promise<readonly Blocker[]> {
  const until = performance.now() + ms
  const first = await openTransactions(side)
  const left = await untilGone(side, first, until)
  if (left.length > 0) return left
  // One that was open may have been prepared since, and has lost its id by that.
  const prepared = (await openTransactions(side)).filter(isPrepared)
  return await untilGone(side, prepared, until)
}

/** Waits until no transaction is older than that, without holding up anybody. Answers who is left. */
export async function untilNoneIsOld<Tx>(
  side: MoveSide<Tx>,
  ageMs: number,
  ms: number,
  onWait?: (blockers: readonly Blocker[]) => Promise<void>,
): Promise<readonly Blocker[]> {
  const until = performance.now() + ms
  for (;;) {
    const old = (await openTransactions(side)).filter((each) => each.ageMs > ageMs)
    if (old.length === 0 || performance.now() >= until) return blockersOf(old)
    await onWait?.(blockersOf(old))
    await pause(lookEveryMs * 10, undefined)
  }
}

async function untilGone<Tx>(
  side: MoveSide<Tx>,
  awaited: readonly OpenTransaction[],
  until: number,
): Promise<readonly Blocker[]> {
  const ids = new Set(awaited.map(({ transaction }) => transaction))
  for (;;) {
    const left = (await openTransactions(side)).filter(({ transaction }) => ids.has(transaction))
    if (left.length === 0 || performance.now() >= until) return blockersOf(left)
    await pause(lookEveryMs, undefined)
  }
}

async function openTransactions<Tx>(side: MoveSide<Tx>): Promise<readonly OpenTransaction[]> {
  return JSON.parse((await side.ask(transactionsHere)) ?? '[]') as OpenTransaction[]
}

function isPrepared({ transaction }: OpenTransaction): boolean {
  return transaction.startsWith(preparedWord)
}

function blockersOf(open: readonly OpenTransaction[]): readonly Blocker[] {
  return open.map(({ pid, name, ageMs, state, query }) => ({ pid, name, ageMs, state, query }))
}
