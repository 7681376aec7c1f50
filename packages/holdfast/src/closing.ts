import { Activities, type Activity, type Method, type Subject } from './core/activity.ts'
import { durationMs } from './core/options/duration.ts'
import { holdfastError } from './core/errors.ts'
import {
  endedInTime,
  stopOptions,
  type StopOptions,
  type Stopped,
} from './core/options/stopping.ts'
import { within } from './core/within.ts'
import { goneSignal } from './leases/held-lease.ts'
import type { Lease } from './leases/lease.ts'
import { optionsGiven } from './core/options/known-options.ts'

/** Something that `close` could not bring to an end. What it holds in the database ends by itself. */
export interface LeftBehind extends Subject {
  /** Why, if it failed and did not merely take too long. */
  readonly error?: unknown
}

/** What `close` did. */
export interface Closed {
  /** Empty if all has ended. */
  readonly left: readonly LeftBehind[]
}

/**
 * What a method is to `close`. One that is not marked is a `call`: refused once Holdfast is closed, and
 * waited for until it has ended.
 *
 * - `finish`: ends or goes on with something that was taken before, so that it is not refused;
 * - `runner`: resolves with something that runs until its `stop` is called; `runner-now` returns it at once;
 * - `lease`: resolves with a lease, or with nothing;
 * - `plain`: sends nothing to the database.
 */
export type Mark = 'call' | 'finish' | 'runner' | 'runner-now' | 'lease' | 'plain'

/** A mark, with what the method is called if it is not called as the others. */
type NamedMark = Partial<Subject> & { readonly mark?: Mark }

/** Marks of methods, by their names. */
export type Marks<F> = { readonly [M in keyof F]?: Mark | NamedMark }

/** What runs until it is stopped. */
interface Runner {
  stop(options?: StopOptions): Promise<Stopped | void>
  drain?(): Promise<void>
}

/**
 * The door of one Holdfast: whatever is handed out is handed out through `face`, so that each of its methods
 * is known while it is under way, and refused once Holdfast is closed.
 */
export class Closing {
  readonly #activities = new Activities()
  readonly #leases = new Set<Lease<unknown>>()
  #closed: Promise<Closed> | undefined
  #done = false

  /** The same thing with all its methods registered, also those that nobody has thought of here. */
  face<F extends object>(of: F, subject: Subject, marks: Marks<F> = {}): F {
    const face = (
      typeof of === 'function' ? this.#registered(of as unknown as Method, subject, 'call') : {}
    ) as F
    for (const key of Reflect.ownKeys(of) as (keyof F)[]) {
      const property = Object.getOwnPropertyDescriptor(of, key) as PropertyDescriptor
      if (property.enumerable !== true) continue
      const { mark = 'call', ...named } = markOf(marks[key])
      const name = subject.what === 'call' ? `${subject.name}.${String(key)}` : subject.name
      const its = { ...subject, name, ...named }
      const value = property.value as unknown
      if (typeof value === 'function') {
        property.value = this.#registered(value as Method, its, mark)
      } else if (isGroup(value)) property.value = this.face(value, its)
      Object.defineProperty(face, key, property)
    }
    return face
  }

  #registered(method: Method, subject: Subject, mark: Mark): Method {
    const registered: Activities['registered'] = (...args) => this.#activities.registered(...args)
    switch (mark) {
      case 'plain':
        return method
      case 'finish':
        return registered(subject, method)
      case 'call':
        return registered(subject, method, rejected)
      case 'lease': {
        const lease = async (...args: unknown[]): Promise<MaybeLease> =>
          await this.#lease((await method(...args)) as MaybeLease)
        return registered(subject, lease, rejected)
      }
      case 'runner': {
        const run = async (...args: unknown[]): Promise<Runner> => {
          const activity = this.#activities.newest
          return this.#running(activity, (await method(...args)) as Runner)
        }
        return registered(subject, run, rejected)
      }
      case 'runner-now': {
        const run = (...args: unknown[]): Runner =>
          this.#running(this.#activities.newest, method(...args) as Runner)
        return registered(subject, run, refused)
      }
    }
  }

  /** Its activity goes on until it was stopped, by whomever, and nothing was left at work: then `close` asks again. */
  #running(activity: Activity, running: Runner): Runner {
    const stop = running.stop.bind(running)
    const drain = running.drain?.bind(running)
    const ended = (stopped: Stopped | void): void => {
      if ((stopped?.left ?? 0) === 0) this.#activities.ended(activity)
    }
    activity.stop = stop
    running.stop = (options) => heard(stop(options), ended)
    if (drain !== undefined) running.drain = () => heard(drain(), ended)
    return running
  }

  async #lease(lease: MaybeLease): Promise<MaybeLease> {
    if (lease === undefined) return undefined
    // It came too late to be released with the others.
    if (this.#done) {
      await lease.release()
      return refused({ what: 'lease', name: lease.name })
    }
    this.#leases.add(lease)
    // Not when its own signal says so: a release may fail, or be rolled back with its transaction.
    const gone = goneSignal(lease.signal)
    gone.addEventListener('abort', () => this.#leases.delete(lease), { once: true })
    return this.face(lease, { what: 'call', name: 'lease' }, leaseMarks)
  }

  /** A second call is the same close: it resolves with what the first one did. */
  async close(given?: StopOptions): Promise<Closed> {
    const options = optionsGiven(given, stopOptions)
    const mostMs = waitsMs(options)
    this.#closed ??= this.#close(options, mostMs)
    return await this.#closed
  }

  /** Leases are released last: what is under way may need them, and others wait for them. */
  async #close(options: StopOptions, mostMs: number): Promise<Closed> {
    this.#activities.closed = true
    const left: LeftBehind[] = []
    const seen = new Set<Activity>()
    const untilMs = performance.now() + mostMs
    // What is under way may begin steps of its own meanwhile, and not wait for them.
    for (let some = this.#unseen(seen); some.length > 0; some = this.#unseen(seen)) {
      for (const activity of some) activity.tellClosing()
      const ends = some.map((activity) => this.#end(activity, options, mostMs))
      left.push(...(await Promise.all(ends)).filter((each) => each !== undefined))
      if (performance.now() >= untilMs) break
    }
    this.#done = true
    await Promise.all(
      [...this.#leases].map(async (lease) => {
        if ((await within(lease.release(), leaseLimitMs)) === undefined)
          left.push({ what: 'lease', name: lease.name })
      }),
    )
    return { left: counted(left) }
  }

  #unseen(seen: Set<Activity>): Activity[] {
    const some = [...this.#activities.underWay].filter((activity) => !seen.has(activity))
    for (const activity of some) seen.add(activity)
    return some
  }

  /** What is left of it, if it does not end in time. */
  async #end(
    activity: Activity,
    options: StopOptions,
    mostMs: number,
  ): Promise<LeftBehind | undefined> {
    const { subject } = activity
    try {
      let failed: Pick<LeftBehind, 'error'> | undefined
      const called = async (): Promise<void> => {
        await activity.called?.catch((error: unknown) => {
          // A leader that cannot end its term says so by its error; the errors of others are their callers'.
          if (subject.what === 'leader') failed = { error }
        })
        await activity.onward?.catch(ignored)
      }
      const ended = await endedInTime(called(), options, () => activity.tellTimeUp())
      if (!ended || (failed !== undefined && activity.onward === undefined))
        return { ...subject, ...failed }
      if (activity.stop === undefined || activity.over) return undefined
      const stopping = activity.stop(options)
      const limits = { within: mostMs, leaveAfter: stopLimitMs }
      const stopped = await endedInTime(stopping, limits, ignored)
      if (!stopped) return subject
      this.#activities.ended(activity)
      return ((await stopping)?.left ?? 0) > 0 ? subject : undefined
    } catch (error) {
      return { ...subject, error }
    }
  }
}

type MaybeLease = Lease<unknown> | undefined

const leaseMarks: Marks<Lease<unknown>> = {
  release: 'finish',
  [Symbol.asyncDispose]: 'finish',
  remainingMs: 'plain',
}

/** A lease that cannot be given back in this time ends by itself. */
const leaseLimitMs = 2_000
/** What something that keeps to its own time may take to write down how it ended. */
const stopLimitMs = 2_000

function waitsMs({ within: time = '30 s', leaveAfter = '5 s' }: StopOptions): number {
  return durationMs(time, 'within') + durationMs(leaveAfter, 'leaveAfter')
}

/** Calls and operations can be many: each kind is told once. */
function counted(left: readonly LeftBehind[]): readonly LeftBehind[] {
  const told = new Set<string>()
  return left.filter(({ what, name, error }) => {
    if ((what !== 'call' && what !== 'operation') || error !== undefined) return true
    const isNew = !told.has(`${what} ${name}`)
    told.add(`${what} ${name}`)
    return isNew
  })
}

/** Methods that are kept together under a name of their own, as `dead` of a queue. */
function isGroup(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  return Object.getPrototypeOf(value) === Object.prototype
}

function markOf(mark: Mark | NamedMark = 'call'): NamedMark {
  return typeof mark === 'string' ? { mark } : mark
}

function refused({ what, name }: Subject): never {
  throw holdfastError('HOLDFAST_CLOSED', { details: { subject: name === '' ? what : name } })
}

async function rejected(subject: Subject): Promise<never> {
  return refused(subject)
}

/** One that fails has ended nothing for certain. */
async function heard<T>(ending: Promise<T>, ended: (how: T) => void): Promise<T> {
  const how = await ending
  ended(how)
  return how
}

function ignored(): void {}
