import { channels } from '../core/events.ts'
import type { AccountId } from '../ledger/account-id.ts'
import type { Refused, Verdict } from '../ledger/verdict.ts'
import { invalid } from '../ledger/calendar.ts'
import type { KnownOptions } from '../core/options/known-options.ts'

/** Settings of the cache of refusals. */
export interface DenyCacheOptions {
  /**
   * For how long a refusal may be repeated without asking the database. That is also how stale it
   * can be: what another process gives back in the meantime is noticed that much later.
   */
  readonly forMs: number
  /** How many refusals are remembered at most. @defaultValue 10 000 */
  readonly size?: number
}

export const denyCacheOptions: KnownOptions<DenyCacheOptions> = {
  forMs: 'checked',
  size: 'checked',
}

/** What is asked for, as far as the cache has to know. */
export interface Question {
  readonly account: AccountId
  readonly cost: bigint
  readonly limit: bigint
  /** The operation id was never sent before, so that there is no earlier answer to repeat. */
  readonly isNew: boolean
}

interface Denial<A> {
  readonly cost: bigint
  readonly limit: bigint
  /** On the monotonic clock of this process. */
  readonly until: number
  readonly verdict: Refused<A>
}

/**
 * Remembers refusals for a short time and repeats them without asking the database. It can only
 * deny, and only what would have been denied a moment ago: at least that cost, at most that limit.
 *
 * It is asked only about operation ids that are new. An id that was accepted before must get that
 * answer again, and only the database knows which those are.
 */
export class DenyCache<A> {
  readonly #book: string
  readonly #forMs: number
  readonly #size: number
  /** By bucket and account; the bucket is what an id of a hold says about where it belongs. */
  readonly #denials = new Map<number, Map<string, Denial<A>>>()
  #count = 0
  /** How often something was given back, by bucket: a refusal from before that is not kept. */
  readonly #changes = new Uint32Array(4096)

  constructor(book: string, { forMs, size = 10_000 }: DenyCacheOptions) {
    this.#book = book
    if (!(forMs > 0 && Number.isFinite(forMs))) {
      throw invalid('denyCache.forMs', 'forMs must be a number of milliseconds above zero')
    }
    if (!Number.isSafeInteger(size) || size < 1) {
      throw invalid('denyCache.size', 'size must be a whole number above zero')
    }
    this.#forMs = forMs
    this.#size = size
  }

  /** The remembered refusal, or what the database says. */
  async answer(question: Question, ask: () => Promise<Verdict<A>>): Promise<Verdict<A>> {
    const known = question.isNew ? this.#find(question) : undefined
    if (known !== undefined) {
      const { quotaDenied } = channels
      if (quotaDenied.hasSubscribers) quotaDenied.publish({ book: this.#book })
      return known
    }
    const { bucket } = question.account
    const before = this.#changes[bucket]
    // Counted from before the question, so that a refusal is never older than promised.
    const asked = performance.now()
    const verdict = await ask()
    const isDenial = !verdict.ok && verdict.reason === 'insufficient'
    if (isDenial && this.#changes[bucket] === before) this.#remember(question, verdict, asked)
    return verdict
  }

  /** Something of this bucket came back, or a limit changed: what was refused may fit now. */
  forget(bucket: number): void {
    this.#changes[bucket] = (this.#changes[bucket] ?? 0) + 1
    this.#drop(bucket)
  }

  #find({ account, cost, limit }: Question): Refused<A> | undefined {
    const denials = this.#denials.get(account.bucket)
    const denial = denials?.get(account.base)
    if (denials === undefined || denial === undefined) return undefined
    if (denial.until <= performance.now()) {
      denials.delete(account.base)
      this.#count -= 1
      return undefined
    }
    return cost >= denial.cost && limit <= denial.limit ? denial.verdict : undefined
  }

  #remember({ account, cost, limit }: Question, verdict: Refused<A>, asked: number): void {
    // The wall clock of this process can only make it shorter: forMs holds whatever it shows.
    const leftMs = verdict.retryAt === undefined ? Infinity : verdict.retryAt.getTime() - Date.now()
    const until = asked + Math.min(this.#forMs, leftMs)
    if (until <= performance.now()) return
    if (this.#count >= this.#size) this.#dropOldest()
    const denials = this.#denials.get(account.bucket) ?? new Map<string, Denial<A>>()
    if (!denials.has(account.base)) this.#count += 1
    denials.set(account.base, { cost, limit, until, verdict })
    this.#denials.set(account.bucket, denials)
  }

  #drop(bucket: number): void {
    this.#count -= this.#denials.get(bucket)?.size ?? 0
    this.#denials.delete(bucket)
  }

  #dropOldest(): void {
    const [oldest] = this.#denials.keys()
    if (oldest !== undefined) this.#drop(oldest)
  }
}
