import { AsyncLocalStorage } from 'node:async_hooks'
import { holdfastError } from './errors.ts'
import type { StopOptions, Stopped } from './options/stopping.ts'
import { toldAtCaller } from './errors/at-caller.ts'

/** What is under way, as `close` reports it. */
export interface Subject {
  readonly what:
    | 'worker'
    | 'schedule'
    | 'leader'
    | 'follower'
    | 'sweeper'
    | 'recorder'
    | 'transaction'
    | 'operation'
    | 'hold'
    | 'lease'
    | 'call'
  /** Of the table, the schedule, the lease, the method, …; empty for what has none. */
  readonly name: string
}

/** The activity that the running code is part of. */
const current = new AsyncLocalStorage<Activity>()

/** One thing that was asked of a Holdfast and is not over: a call, or what a call has started. */
export class Activity {
  readonly subject: Subject
  /** What it is a step of, as long as that is not over. */
  readonly outer: Activity | undefined
  readonly #register: Activities
  over = false
  /** The call itself; what it has started may go on after that. */
  called: Promise<unknown> | undefined
  /** What the call has left behind: it is over only when this is. */
  onward: Promise<unknown> | undefined
  /** Ends what the call has started. */
  stop: ((options: StopOptions) => Promise<Stopped | void>) | undefined
  #closing: AbortController | undefined
  #timeUp: AbortController | undefined

  constructor(register: Activities, subject: Subject, outer: Activity | undefined) {
    this.#register = register
    this.subject = subject
    this.outer = outer
  }

  belongsTo(register: Activities): boolean {
    return this.#register === register
  }

  /** Made only for who asks: nearly nobody does. */
  get closing(): AbortSignal {
    this.#closing ??= new AbortController()
    if (this.#register.closed) this.tellClosing()
    return this.#closing.signal
  }

  get timeUp(): AbortSignal {
    this.#timeUp ??= new AbortController()
    return this.#timeUp.signal
  }

  tellClosing(): void {
    this.#closing?.abort(this.#reason())
  }

  tellTimeUp(): void {
    this.#timeUp?.abort(this.#reason())
  }

  #reason(): Error {
    const subject = this.subject.name === '' ? this.subject.what : this.subject.name
    return holdfastError('HOLDFAST_CLOSING', { details: { subject } })
  }
}

/** The nearest one that is not over. Those that are over are let go, or a chain of timers would keep them all. */
function underWay(activity: Activity | undefined): Activity | undefined {
  let at = activity
  while (at?.over === true) at = at.outer
  return at
}

/**
 * Aborted as soon as the Holdfast that runs this call is closed; nothing if none does. For what works until
 * somebody ends it.
 */
export function closingSignal(): AbortSignal | undefined {
  return current.getStore()?.closing
}

/** The same, but after `within`: for work that is given time to end by itself. */
export function timeUpSignal(): AbortSignal | undefined {
  return current.getStore()?.timeUp
}

/** The running call will end before this does, which it has started: `close` is to know of it as long as it works. */
export function leaveBehind(working: Promise<unknown>): void {
  const activity = current.getStore()
  if (activity !== undefined) activity.onward = working
}

/** One signal for both, where there are two. */
export function anyOf(one: AbortSignal, other: AbortSignal | undefined): AbortSignal
export function anyOf(
  one: AbortSignal | undefined,
  other: AbortSignal | undefined,
): AbortSignal | undefined
export function anyOf(
  one: AbortSignal | undefined,
  other: AbortSignal | undefined,
): AbortSignal | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return AbortSignal.any([one, other])
}

/** A method, whatever it takes. */
export type Method = (...args: unknown[]) => unknown

/**
 * A way for the commonest calls of a method, of which there are very many: nothing where it cannot be gone, and then
 * nothing was done. What it gives tells `crowd` when it is over, and where it was asked for if it fails.
 */
export type ShortWay = (args: readonly unknown[], crowd: Crowd) => Promise<unknown> | undefined

const shortWays = new WeakMap<object, ShortWay>()

/** The same method, with a way for its commonest calls. */
export function withShortWay<M extends object>(method: M, short: ShortWay): M {
  shortWays.set(method, short)
  return method
}

/** Calls of one method that are under way, known as one: a register entry of its own costs more than the rest of a call. */
export class Crowd {
  readonly #register: Activities
  readonly #subject: Subject
  #count = 0
  #activity: Activity | undefined
  #ended: PromiseWithResolvers<void> | undefined

  constructor(register: Activities, subject: Subject) {
    this.#register = register
    this.#subject = subject
  }

  begun(): void {
    this.#count += 1
    if (this.#activity !== undefined) return
    this.#ended = Promise.withResolvers()
    this.#activity = new Activity(this.#register, this.#subject, undefined)
    this.#activity.called = this.#ended.promise
    this.#register.underWay.add(this.#activity)
  }

  over(): void {
    this.#count -= 1
    if (this.#count > 0 || this.#activity === undefined) return
    this.#ended?.resolve()
    this.#register.ended(this.#activity)
    this.#activity = undefined
  }
}

/** Everything that is under way in one Holdfast. */
export class Activities {
  readonly underWay: Set<Activity> = new Set()
  closed = false

  /**
   * The same method, registered while it is under way. Every guard goes through this, so that it costs one
   * promise, for errors that begin with the caller, and one frame of the stack. `refuse` is asked before anything new once this is closed.
   */
  registered(subject: Subject, method: Method, refuse?: (subject: Subject) => unknown): Method {
    const short = shortWays.get(method)
    const crowd = new Crowd(this, subject)
    return (...args) => {
      if (short !== undefined && !this.closed) {
        const answer = short(args, crowd)
        if (answer !== undefined) return answer
      }
      if (this.closed && refuse !== undefined && !this.#isStep()) return refuse(subject)
      const outside = current.getStore()
      const activity = new Activity(this, subject, underWay(outside))
      this.underWay.add(activity)
      // The same as `run`, without its frame: a lock looks for its caller in the second one.
      current.enterWith(activity)
      let result: unknown
      try {
        result = method(...args)
      } catch (error) {
        this.ended(activity)
        throw error
      } finally {
        current.enterWith(outside as Activity)
      }
      this.#until(activity, result)
      return result instanceof Promise ? toldAtCaller(result) : result
    }
  }

  /** The activity of the code that runs, which has begun just now. */
  get newest(): Activity {
    return current.getStore() as Activity
  }

  ended(activity: Activity): void {
    activity.over = true
    this.underWay.delete(activity)
  }

  #until(activity: Activity, result: unknown): void {
    const ended = (): void => this.ended(activity)
    const gone = (): void => {
      if (activity.onward !== undefined) activity.onward.then(ended, ended)
      else if (activity.stop === undefined) ended()
    }
    if (!(result instanceof Promise)) return gone()
    activity.called = result
    result.then(gone, gone)
  }

  /** Whether the running code belongs to something that is under way here. */
  #isStep(): boolean {
    let at = underWay(current.getStore())
    while (at !== undefined && !at.belongsTo(this)) at = underWay(at.outer)
    return at !== undefined
  }
}
