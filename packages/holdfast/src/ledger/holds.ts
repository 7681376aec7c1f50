import { anyOf, timeUpSignal } from '../core/activity.ts'
import { type Duration, durationMs } from '../core/options/duration.ts'
import { holdfastError } from '../core/errors.ts'
import { isHoldId } from './account-id.ts'
import { holdOptions, type OperationOptions } from './book.ts'
import type { Kernel } from './kernel.ts'
import {
  type Amount,
  amountText,
  flags,
  type Key,
  type Kind,
  kinds,
  type Line,
} from './operation.ts'
import type { Accepted, AmountReader, Verdict } from './verdict.ts'
import { assertFunction } from '../core/options/given.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'

/** What happens where reality and estimate differ. */
export interface HoldPolicy {
  /**
   * A settlement above what was held: `book` it even into debt, `refuse` it, `cap` it at what was
   * held, or take it only if `available`. @defaultValue 'book'; stock: 'refuse'
   */
  readonly overrun?: 'book' | 'refuse' | 'cap' | 'available'
  /**
   * A settlement after the hold expired: `book` the actual amount once, `refuse` it, or `ignore` it
   * (accepted, nothing charged). @defaultValue 'book'
   */
  readonly late?: 'book' | 'refuse' | 'ignore'
}

/** The hold that a `withHold` body works under. */
export interface Hold<A> {
  readonly id: string
  readonly amount: A
  readonly expiresAt: Date
  /** Aborted shortly before the hold expires; pass it to whatever the body waits for. */
  readonly signal: AbortSignal
  /** Charges what it really cost. Once; a second call with the same amount is answered the same. */
  settle(actual: Amount): Promise<Verdict<A>>
  /** Keeps it open for this long from now, at least. */
  extend(ttl: Duration): Promise<Verdict<A>>
}

/** Ends and prolongs holds by their id, whoever made them. */
export interface Holds<Tx, A> {
  /** What happens to a settlement after the hold expired, as the book was declared. */
  readonly late: NonNullable<HoldPolicy['late']>
  /**
   * Charges what it really cost and gives the rest back. Keyed by the hold: whoever settles,
   * releases or lets it expire first wins, everyone else is told how it ended.
   */
  settle(holdId: string, actual?: Amount): Promise<Verdict<A>>
  settle(tx: Tx, holdId: string, actual?: Amount): Promise<Verdict<A>>
  /** Gives all of it back. */
  release(holdId: string): Promise<Verdict<A>>
  release(tx: Tx, holdId: string): Promise<Verdict<A>>
  /** Keeps it open for this long from now, at least. */
  extend(holdId: string, ttl: Duration): Promise<Verdict<A>>
  extend(tx: Tx, holdId: string, ttl: Duration): Promise<Verdict<A>>
}

/** A line that settles, releases or extends a hold: all of it, unless a key is added. */
export function holdLine(kind: Kind, book: string, holdId: unknown, policy: HoldPolicy): Line {
  if (!isHoldId(holdId)) {
    throw holdfastError('LEDGER_NAME_INVALID', {
      details: { field: 'holdId', subject: 'holdId is not one that a reservation returned' },
    })
  }
  const bits = flags.overrun[policy.overrun ?? 'book'] | flags.late[policy.late ?? 'book']
  return { kind, book, ref: holdId, flags: bits }
}

export function createHolds<Tx, A>(
  kernel: Kernel<Tx>,
  book: string,
  policy: HoldPolicy,
  amounts: AmountReader<A>,
): Holds<Tx, A> {
  const end = (
    args: readonly unknown[],
    kind: Kind,
    rest: { readonly amount?: string; readonly ttlMs?: number },
  ): Promise<Verdict<A>> => {
    const [tx, holdId] = typeof args[0] === 'string' ? [undefined, args[0]] : args
    const line = { ...holdLine(kind, book, holdId, policy), ...rest }
    return kernel.apply(tx as Tx | undefined, { book, lines: [line] }, amounts)
  }
  const lastOf = (args: readonly unknown[]): unknown => args[typeof args[0] === 'string' ? 1 : 2]
  return {
    late: policy.late ?? 'book',
    settle: async (...args: readonly unknown[]) => {
      const actual = lastOf(args)
      return await end(
        args,
        kinds.settle,
        actual === undefined ? {} : { amount: amountText(actual, 'actual', 0n) },
      )
    },
    release: async (...args: readonly unknown[]) => await end(args, kinds.release, {}),
    extend: async (...args: readonly unknown[]) =>
      await end(args, kinds.extend, { ttlMs: durationMs(lastOf(args) as Duration, 'ttl') }),
  }
}

/** What `withHold` needs besides the key. */
export interface WithHoldOptions extends OperationOptions {
  readonly estimate: Amount
  /** How long the hold lives if nobody ends it, on the server's clock. */
  readonly ttl: Duration
}

export const overrun: readonly NonNullable<HoldPolicy['overrun']>[] = [
  'book',
  'refuse',
  'cap',
  'available',
]

export const late: readonly NonNullable<HoldPolicy['late']>[] = ['book', 'refuse', 'ignore']

const withHoldOptions: KnownOptions<WithHoldOptions> = {
  ...holdOptions,
  estimate: 'checked',
}

/**
 * Reserves, runs the body, and makes sure that the reservation ends: settled by the body, settled at
 * the estimate if the body forgot, released if it threw, expired by itself if the process died.
 *
 * With an operation id that was used before, the body runs again only if the hold is still open: a
 * first run died, or is still under way. One that has ended was paid for, and is refused.
 *
 * @throws LEDGER_HOLD_REFUSED with the verdict in `details.verdict`
 */
export async function withHold<Tx, A extends number | bigint, T>(
  holds: Holds<Tx, A>,
  reserve: (key: Key, options: WithHoldOptions) => Promise<Verdict<A>>,
  key: Key,
  given: WithHoldOptions,
  body: (hold: Hold<A>) => Promise<T>,
): Promise<T> {
  const options = optionsGiven(given, withHoldOptions)
  assertFunction(body)
  const ttlMs = durationMs(options.ttl, 'ttl')
  const reserved = accepted(await reserve(key, options))
  const id = reserved.holdId as string
  const { expiresAt } = reserved.replayed ? accepted(await holds.extend(id, ttlMs)) : reserved
  const watch = new ExpiryWatch(ttlMs)
  let settled: Promise<Verdict<A>> | undefined
  const settle = (actual?: Amount): Promise<Verdict<A>> => {
    settled = holds.settle(id, actual).then((verdict) => {
      // What the policy refused leaves the hold open, as if it had not been asked for.
      if (!verdict.ok && verdict.reason === 'insufficient') settled = undefined
      return verdict
    })
    return settled
  }
  const hold: Hold<A> = {
    id,
    amount: sameKind(options.estimate, reserved.held),
    expiresAt: expiresAt as Date,
    signal: anyOf(watch.signal, timeUpSignal()),
    settle,
    async extend(ttl) {
      const verdict = await holds.extend(id, ttl)
      if (verdict.ok) watch.restart(durationMs(ttl, 'ttl'))
      return verdict
    },
  }
  try {
    const result = await body(hold)
    await settled
    if (settled === undefined) accepted(await settle())
    return result
  } catch (error) {
    // If it cannot be released now, it expires by itself; the caller gets the body's error.
    if (settled === undefined) await holds.release(id).catch(() => undefined)
    throw error
  } finally {
    watch.stop()
  }
}

function accepted<A extends number | bigint>(verdict: Verdict<A>): Accepted<A> {
  if (verdict.ok) return verdict
  throw holdfastError('LEDGER_HOLD_REFUSED', { details: { subject: verdict.reason, verdict } })
}

/** An amount as the book gives amounts. */
function sameKind<A>(amount: Amount, like: A): A {
  return (typeof like === 'bigint' ? BigInt(amount) : Number(amount)) as A
}

/** How much of a hold's life is left when its signal fires: to settle what was done so far. */
const lastShare = 0.1

/** Tells a body that its hold is about to expire. The server's clock decides; this only warns. */
class ExpiryWatch {
  readonly #controller = new AbortController()
  #timer: NodeJS.Timeout | undefined

  constructor(ttlMs: number) {
    this.restart(ttlMs)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  restart(ttlMs: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(
      () => this.#controller.abort(holdfastError('LEDGER_HOLD_EXPIRING')),
      Math.min(ttlMs * (1 - lastShare), 2 ** 31 - 1),
    )
    this.#timer.unref()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}
