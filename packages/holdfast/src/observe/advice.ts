import { comesAfter } from './lock-id.ts'
import type { Advice, Block, ObservedLock } from './model.ts'

/** What advice about a session is made from. */
export interface AdviceFacts {
  readonly pid: number
  readonly state: string
  readonly stateMs: number
  readonly transactionMs: number | undefined
  readonly holds: readonly ObservedLock[]
  readonly waitsFor: ObservedLock | undefined
  readonly blockedBy: readonly Block[]
  readonly waiters: number
  /** It waits for somebody who waits for it. */
  readonly inCircle: boolean
}

/** A pause between two statements is no fault yet. */
const acrossIoMs = 100
const idleMs = 1_000
/** Whoever is in a transaction for longer keeps others from more than a lock. */
const longTransactionMs = 60_000

/** Everything there is to say about a session that blocks or waits. */
export function sessionAdvice(facts: AdviceFacts): readonly Advice[] {
  const advice: Advice[] = []
  if (facts.inCircle) advice.push(deadlockAhead)
  const { waitsFor } = facts
  if (waitsFor !== undefined && isOutOfOrder(facts.holds, waitsFor)) advice.push(orderViolated)
  if (facts.waiters > 0) {
    if (facts.pid === 0) advice.push(preparedTransaction)
    const idle = facts.state.startsWith('idle in transaction')
    if (idle && facts.stateMs >= idleMs) advice.push(idleInTransaction)
    if (idle && facts.stateMs >= acrossIoMs && facts.holds.some(({ kind }) => kind === 'named')) {
      advice.push(heldAcrossIo)
    }
  }
  if ((facts.transactionMs ?? 0) >= longTransactionMs) advice.push(longTransaction)
  return advice
}

/** Holdfast sorts the keys of one call: whoever waits for an earlier one took them in two calls. */
function isOutOfOrder(holds: readonly ObservedLock[], wanted: ObservedLock): boolean {
  const { id } = wanted
  if (id === undefined || !isSortable(wanted)) return false
  return holds.some((held) => {
    if (held.id === undefined || !isSortable(held)) return false
    return held.id === id ? held.mode !== wanted.mode : comesAfter(held.id, id)
  })
}

/** Locks of Holdfast's own are not taken together with others. */
function isSortable({ kind, meaning }: ObservedLock): boolean {
  return kind === 'named' && meaning === undefined
}

const deadlockAhead: Advice = {
  code: 'deadlock-ahead',
  what: 'Sessions wait for each other in a circle; PostgreSQL will end one of them with 40P01.',
  fix: 'Take all keys in one call, which sorts them, or always take them in the same order.',
}

const orderViolated: Advice = {
  code: 'order-violated',
  what: 'It waits for a lock that comes before one it holds: somebody who takes them in order deadlocks with it.',
  fix: 'Take all keys in one call, which sorts them; do not turn a shared lock into an exclusive one.',
}

const preparedTransaction: Advice = {
  code: 'prepared-transaction',
  what: 'A prepared transaction holds the lock, and no session will ever end it.',
  fix: 'COMMIT PREPARED or ROLLBACK PREPARED it; pg_prepared_xacts lists them.',
}

const idleInTransaction: Advice = {
  code: 'idle-in-transaction',
  what: 'Its transaction is open and it does nothing, while others wait for what it holds.',
  fix: 'Find what it waits for outside of the database, or end it; idle_in_transaction_session_timeout does so by itself.',
}

const heldAcrossIo: Advice = {
  code: 'held-across-io',
  what: 'It holds a lock while the application does something else than talking to the database.',
  fix: 'Do the slow work before or after the guard; where it has to be in between, use a hold or a lease.',
}

const longTransaction: Advice = {
  code: 'long-transaction',
  what: 'Its transaction has been open for more than a minute: locks are kept, and vacuum cannot clean up behind it.',
  fix: 'Split the work into shorter transactions; transaction_timeout (PostgreSQL 17) or statement_timeout bounds it.',
}
