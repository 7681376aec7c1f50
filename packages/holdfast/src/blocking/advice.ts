import type { Advice, Block, ObservedLock } from './model.ts'

/** What there is to say about a session. */
type SessionAdvice = Extract<
  Advice['code'],
  | 'deadlock-ahead'
  | 'order-violated'
  | 'blocker-not-told'
  | 'prepared-transaction'
  | 'idle-in-transaction'
  | 'held-across-io'
  | 'long-transaction'
>

type Words = Omit<Advice, 'code'>

/** What is wrong and what to do, as it is on one engine. One that always tells who blocks has no words for when it does not. */
export type AdviceWords = Readonly<Record<Exclude<SessionAdvice, 'blocker-not-told'>, Words>> & {
  readonly 'blocker-not-told'?: Words
}

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

/** Everything there is to say about a session that blocks or waits, in the words of its engine. */
export function sessionAdvice(facts: AdviceFacts, words: AdviceWords): readonly Advice[] {
  return codesFor(facts).flatMap((code) => {
    const said = words[code]
    return said === undefined ? [] : [{ code, ...said }]
  })
}

function codesFor(facts: AdviceFacts): readonly SessionAdvice[] {
  const codes: SessionAdvice[] = []
  if (facts.inCircle) codes.push('deadlock-ahead')
  const { waitsFor } = facts
  if (waitsFor !== undefined && isOutOfOrder(facts.holds, waitsFor)) codes.push('order-violated')
  if (waitsFor !== undefined && facts.blockedBy.length === 0) codes.push('blocker-not-told')
  if (facts.waiters > 0) {
    if (facts.pid === 0) codes.push('prepared-transaction')
    const idle = facts.state.startsWith('idle in transaction')
    if (idle && facts.stateMs >= idleMs) codes.push('idle-in-transaction')
    if (idle && facts.stateMs >= acrossIoMs && facts.holds.some(({ kind }) => kind === 'named')) {
      codes.push('held-across-io')
    }
  }
  if ((facts.transactionMs ?? 0) >= longTransactionMs) codes.push('long-transaction')
  return codes
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

/** In the order in which Holdfast takes locks: space, then number. */
function comesAfter(a: string, b: string): boolean {
  const [spaceA, numberA] = orderOf(a)
  const [spaceB, numberB] = orderOf(b)
  return spaceA === spaceB ? numberA > numberB : spaceA > spaceB
}

function orderOf(id: string): readonly [space: string, number: bigint] {
  const [first = '', second] = id.slice(2).split(',')
  const number =
    second === undefined
      ? BigInt(first)
      : (BigInt(first) << 32n) | BigInt.asUintN(32, BigInt(second))
  return [id.slice(0, 1), number]
}
