import type { Duration } from '../core/options/duration.ts'
import { holdfastError } from '../core/errors.ts'
import type { Holds } from '../ledger/holds.ts'
import type { Amount, Key } from '../ledger/operation.ts'
import type { Accepted, Refused, Verdict } from '../ledger/verdict.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'

/** A book whose amounts can be put aside: a quota, or credits. */
export interface HoldingBook<A> extends Pick<Holds<never, A>, 'late'> {
  hold(key: Key, amount: Amount, options: HoldingOptions): Promise<Verdict<A>>
  settle(holdId: string): Promise<Verdict<A>>
  release(holdId: string): Promise<Verdict<A>>
  extend(holdId: string, ttl: Duration): Promise<Verdict<A>>
}

interface HoldingOptions {
  readonly operationId: string
  readonly ttl: Duration
  readonly scope?: string
}

/** What is taken from one account, on whatever primary it is. */
export interface AcrossPart<A> {
  readonly book: HoldingBook<A>
  readonly key: Key
  readonly amount: Amount
  readonly scope?: string
}

/** Options of `holdAcross`. */
export interface AcrossOptions {
  /** The same id once more goes on where the first call stopped. */
  readonly operationId: string
  /** How long a reservation lives if nobody goes on: much longer than the call takes. @defaultValue '1 min' */
  readonly ttl?: Duration
}

const acrossOptions: KnownOptions<AcrossOptions> = {
  operationId: 'checked',
  ttl: 'checked',
}

/** All parts were charged, or none. */
export type AcrossVerdict<A> =
  | { readonly ok: true; readonly verdicts: readonly Accepted<A>[] }
  | {
      readonly ok: false
      /** The part that was refused, by its place; what was reserved for the others was given back. */
      readonly part: number
      readonly verdict: Refused<A>
    }

/**
 * Charges accounts on several primaries, all or none in the end: reserves everywhere, then settles
 * everywhere. Not isolated: others see the reservations meanwhile, and a moment in which some parts are
 * settled and others not yet.
 *
 * The settlement of the first part is the decision: before it, whatever happens, everything is given back or
 * expires; after it, whoever calls again with the same id finishes the rest. Its book must be declared with
 * `late: 'refuse'`, so that a reservation that expired stays expired; none with `late: 'ignore'`, which settles what
 * has expired without charging it.
 *
 * @example
 * const verdict = await holdAcross(
 *   [{ book: wallet, key: buyer, amount: 5 }, { book: seats, key: show, amount: 1 }],
 *   { operationId: order.id },
 * )
 * @throws SHARD_HOLD_INCOMPLETE, OPTION_INVALID, and those of `hold` and `settle`
 */
export async function holdAcross<A extends number | bigint>(
  parts: readonly AcrossPart<A>[],
  given: AcrossOptions,
): Promise<AcrossVerdict<A>> {
  const { operationId, ttl = '1 min' } = optionsGiven(given, acrossOptions)
  const [first] = parts
  if (first === undefined) throw invalid('parts', 'parts is empty')
  if (first.book.late !== 'refuse') {
    throw invalid('parts', 'the book of the first part must be declared with late: "refuse"')
  }
  if (parts.some(({ book }) => book.late === 'ignore')) {
    throw invalid(
      'parts',
      'a book with late: "ignore" would say that it was settled and charge nothing',
    )
  }
  const holds: string[] = []
  for (const [part, { book, key, amount, scope }] of parts.entries()) {
    const id = parts.length === 1 ? operationId : `${operationId}:${part}`
    const options = { operationId: id, ttl, ...(scope === undefined ? {} : { scope }) }
    const verdict = await book.hold(key, amount, options)
    if (!verdict.ok) return await giveBack(parts, holds, part, verdict)
    const holdId = verdict.holdId as string
    holds.push(holdId)
    // Reserved by an earlier call: for as long again, if it is still open. If not, the first part tells.
    if (verdict.replayed) await book.extend(holdId, ttl)
  }
  const decision = await first.book.settle(holds[0] as string)
  if (!decision.ok) return await giveBack(parts, holds.slice(1), 0, decision, 1)
  const verdicts = [decision]
  for (let part = 1; part < parts.length; part += 1) {
    const { book } = parts[part] as AcrossPart<A>
    const verdict = await book.settle(holds[part] as string)
    if (!verdict.ok) {
      throw holdfastError('SHARD_HOLD_INCOMPLETE', {
        details: { subject: `part ${part}: ${verdict.reason}`, part, verdict },
      })
    }
    verdicts.push(verdict)
  }
  return { ok: true, verdicts }
}

/**
 * What cannot be given back now expires by itself. If the first part was settled meanwhile, by a call under
 * the same id, that call finishes the rest.
 */
async function giveBack<A>(
  parts: readonly AcrossPart<A>[],
  holds: readonly string[],
  part: number,
  verdict: Refused<A>,
  from = 0,
): Promise<AcrossVerdict<A>> {
  for (const [at, holdId] of holds.entries()) {
    const released = await parts[at + from]?.book.release(holdId)
    if (at + from === 0 && released?.ok === false && released.state === 'settled') break
  }
  return { ok: false, part, verdict }
}

function invalid(option: string, subject: string): Error {
  return holdfastError('OPTION_INVALID', { details: { option, subject } })
}
