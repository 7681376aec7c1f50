import type { Claims } from './claims/index.ts'
import { holdfastError } from './core/errors.ts'
import { endedInTime, type StopOptions, type Stopped } from './core/stopping.ts'
import type { UnderWay } from './core/under-way.ts'
import { within } from './core/within.ts'
import type { Leader, Lease } from './leases/index.ts'
import type { Hold, WithHoldOptions } from './ledger/holds.ts'
import type { Key } from './ledger/operation.ts'

/** Something that `close` could not bring to an end. What it holds in the database ends by itself. */
export interface LeftBehind {
  readonly what:
    | 'worker'
    | 'schedule'
    | 'leader'
    | 'sweeper'
    | 'recorder'
    | 'transaction'
    | 'operation'
    | 'hold'
    | 'lease'
  /** Of the table, the schedule, the lease, …; empty for what has none. */
  readonly name: string
  /** Why, if it failed and did not merely take too long. */
  readonly error?: unknown
}

/** What `close` did. */
export interface Closed {
  /** Empty if all has ended. */
  readonly left: readonly LeftBehind[]
}

interface Part {
  readonly what: LeftBehind['what']
  readonly name: string
  stop(options: StopOptions): Promise<Stopped | void>
}

/** A book whose amounts can be put aside for as long as a body runs. */
interface Holding<A> {
  withHold<T>(key: Key, options: WithHoldOptions, body: (hold: Hold<A>) => Promise<T>): Promise<T>
}

/** A function of ours, whatever it takes. */
type Call = (...args: never[]) => Promise<unknown>

/** Knows what is under way in one Holdfast, and ends it. */
export class Closing {
  readonly #parts = new Set<Part>()
  readonly #leases = new Set<Lease<never>>()

  /** Something with a `stop` of its own, known until it has been called. */
  running<R extends { stop(options?: StopOptions): Promise<Stopped | void> }>(
    what: Part['what'],
    name: string,
    running: R,
  ): R {
    const stop = running.stop.bind(running)
    const part: Part = { what, name, stop }
    this.#parts.add(part)
    running.stop = async (options) => {
      this.#parts.delete(part)
      return await stop(options)
    }
    return running
  }

  /**
   * Work of the caller's that is waited for; nobody can end it from here. Every guard goes through this, so
   * that it costs no promise of its own, and one frame of the stack.
   */
  waited<F extends Call>(what: Part['what'], call: F): F {
    return ((...args) => {
      const ended = call(...args)
      const part: Part = { what, name: '', stop: (options) => over(ended, options, ignored) }
      this.#parts.add(part)
      const gone = (): void => {
        this.#parts.delete(part)
      }
      ended.then(gone, gone)
      return ended
    }) as F
  }

  /** The same for what is only counted. */
  counted(what: Part['what'], underWay: UnderWay): void {
    this.#parts.add({ what, name: '', stop: (options) => over(underWay.ended(), options, ignored) })
  }

  /** The same for bodies under a hold, which are told to stop. */
  holding<A, B>(name: string, book: B & Holding<A>): B {
    const withHold: Holding<A>['withHold'] = (key, options, body) => {
      const closing = new AbortController()
      const reason = { details: { subject: name } }
      return this.#during(
        'hold',
        name,
        () =>
          book.withHold(key, options, (hold) =>
            body({ ...hold, signal: AbortSignal.any([hold.signal, closing.signal]) }),
          ),
        () => closing.abort(holdfastError('HOLDFAST_CLOSING', reason)),
      )
    }
    return { ...book, withHold }
  }

  /** A candidate resigns, and its term's body is told to stop, as by the signal that it was given. */
  leading<Tx>(name: string, leader: Leader<Tx>): Leader<Tx> {
    const run: Leader<Tx>['run'] = async (body, options = {}) => {
      const closing = new AbortController()
      const signal = AbortSignal.any([closing.signal, ...(options.signal ? [options.signal] : [])])
      const ended = leader.run(body, { ...options, signal })
      await this.#track(
        { what: 'leader', name, stop: async () => (closing.abort(), await ended) },
        ended,
      )
    }
    return Object.defineProperty({ run } as Leader<Tx>, 'term', { get: () => leader.term })
  }

  lease<L extends Lease<never> | undefined>(lease: L): L {
    if (lease === undefined) return lease
    this.#leases.add(lease)
    // Lost or released, it is over in the same way.
    lease.signal.addEventListener('abort', () => this.#leases.delete(lease), { once: true })
    return lease
  }

  claims<C extends Pick<Claims<never, never>, 'run'>>(name: string, claims: C): C {
    if (typeof claims.run !== 'function') return claims
    return {
      ...claims,
      run: async (options: never) => this.running('worker', name, await claims.run(options)),
    }
  }

  /** First what works by itself, then what callers have under way, leases last: others wait for them. */
  async close(options: StopOptions = {}): Promise<Closed> {
    const left: LeftBehind[] = []
    const end = async ({ what, name, stop }: Part): Promise<void> => {
      try {
        const stopped = await stop(options)
        if (stopped !== undefined && stopped.left > 0) left.push({ what, name })
      } catch (error) {
        left.push({ what, name, error })
      }
    }
    await Promise.all([...this.#parts].map(end))
    await Promise.all(
      [...this.#leases].map(async (lease) => {
        if ((await within(lease.release(), leaseLimitMs)) === undefined)
          left.push({ what: 'lease', name: lease.name })
      }),
    )
    return { left }
  }

  async #during<T>(
    what: Part['what'],
    name: string,
    run: () => Promise<T>,
    abort: () => void,
  ): Promise<T> {
    const ended = run()
    const stop = (options: StopOptions): Promise<Stopped> => over(ended, options, abort)
    return await this.#track({ what, name, stop }, ended)
  }

  async #track<T>(part: Part, ended: Promise<T>): Promise<T> {
    this.#parts.add(part)
    try {
      return await ended
    } finally {
      this.#parts.delete(part)
    }
  }
}

/** Waits until it has ended, and says so if it does not. */
async function over(
  ended: Promise<unknown>,
  options: StopOptions,
  abort: () => void,
): Promise<Stopped> {
  const settled = ended.then(ignored, ignored)
  return { left: (await endedInTime(settled, options, abort)) ? 0 : 1 }
}

/** A lease that cannot be given back in this time ends by itself. */
const leaseLimitMs = 2_000

function ignored(): void {}
