import { type Driver, type Executor, primariesOf, type Statement } from '../core/driver.ts'
import type { Engine } from '../core/engine.ts'
import { type HoldfastError, holdfastError, isHoldfastError } from '../core/errors.ts'
import { settledWithin } from '../core/within.ts'

/** A primary that could not be asked, or failed. */
export interface PrimaryFailure {
  readonly primary: string
  readonly error: unknown
}

/** What all primaries said. Those that failed are not among the answers. */
export interface EachAnswer<T> {
  readonly answers: readonly T[]
  /** Names those that failed, and why. */
  readonly failure: Error | undefined
}

/**
 * Asks every primary, all at the same time: one that fails or says nothing keeps no other from being asked, nor
 * the caller from hearing of the others. With one server it is that server's answer or error.
 */
export async function askEach<Tx, T>(
  driver: Driver<Tx>,
  ask: (primary: Driver<Tx>, name: string) => Promise<T>,
): Promise<EachAnswer<T>> {
  const { shards } = driver
  if (shards === undefined) return { answers: [await ask(driver, '')], failure: undefined }
  const names = [...shards.primaries.keys()]
  const asked = await Promise.allSettled(
    [...shards.primaries].map(([name, primary]) =>
      heard(primary.alone, driver.engine, () => ask(primary, name)),
    ),
  )
  const failures: PrimaryFailure[] = []
  const answers: T[] = []
  for (const [at, each] of asked.entries()) {
    if (each.status === 'fulfilled') answers.push(each.value)
    else failures.push({ primary: names[at] as string, error: each.reason })
  }
  return { answers, failure: failureOf(failures, names.length) }
}

/** The same where an answer without one of them would be wrong. @throws SHARD_PRIMARY_FAILED */
export async function askAll<Tx, T>(
  driver: Driver<Tx>,
  ask: (primary: Driver<Tx>, name: string) => Promise<T>,
): Promise<readonly T[]> {
  const { answers, failure } = await askEach(driver, ask)
  if (failure !== undefined) throw failure
  return answers
}

/**
 * Asks one of the primaries, by its place. Where it fails the error names it, and `next` says how to go on
 * without it. @throws SHARD_PRIMARY_FAILED
 */
export async function askOne<Tx, T>(
  driver: Driver<Tx>,
  at: number,
  ask: (primary: Driver<Tx>) => Promise<T>,
  next?: string,
): Promise<T> {
  const primary = primariesOf(driver)[at] as Driver<Tx>
  if (driver.shards === undefined) return await ask(primary)
  try {
    return await heard(primary.alone, driver.engine, () => ask(primary))
  } catch (error) {
    const name = [...driver.shards.primaries.keys()][at] as string
    throw failureOf([{ primary: name, error }], undefined, { next }) as Error
  }
}

/**
 * One error for all of them. If every primary fails with the same code it is no matter of one of them, and its own
 * error tells more.
 */
export function failureOf(
  failures: readonly PrimaryFailure[],
  primaries: number | undefined,
  details: Readonly<Record<string, unknown>> = {},
): Error | undefined {
  const [first] = failures
  if (first === undefined) return undefined
  const codes = new Set(failures.map(({ error }) => codeOf(error)))
  if (failures.length === primaries && codes.size === 1 && isHoldfastError(first.error)) {
    return first.error
  }
  return holdfastError('SHARD_PRIMARY_FAILED', {
    details: { subject: subjectOf(failures), failures, ...details },
    cause: first.error,
  })
}

/** The same where nothing is done without them. */
export function neededOf(failures: readonly PrimaryFailure[]): HoldfastError | undefined {
  const [first] = failures
  if (first === undefined) return undefined
  const details = { subject: subjectOf(failures), failures }
  return holdfastError('SHARD_PRIMARY_NEEDED', { details, cause: first.error })
}

function subjectOf(failures: readonly PrimaryFailure[]): string {
  return failures.map(({ primary, error }) => `${primary}: ${codeOf(error)}`).join('; ')
}

/** Without what the server or the client says: that may have values in it. */
function codeOf(error: unknown): string {
  const code = (error as { readonly code?: unknown } | null)?.code
  return typeof code === 'string' ? code : 'error'
}

/** How long a primary may take before it is asked whether it is there at all, and for the answer to that. */
const [askedMs, silenceMs] = [1_000, 2_000]
/** One that was silent is asked again so often, and by one statement only. */
const againMs = 5_000

/**
 * What a primary answers, however long it works on that; rejects if it does not answer a question without any work
 * either. Then the question is left behind: nobody knows what becomes of it. While a primary is known to be silent,
 * nothing else is sent to it from here.
 *
 * @throws SHARD_NO_ANSWER
 */
export async function heard<T>(alone: Executor, engine: Engine, ask: () => Promise<T>): Promise<T> {
  const pulse = pulseOf(alone, engine)
  if (pulse.silent) {
    pulse.lookAgain()
    throw noAnswer()
  }
  const asking = ask()
  while (!(await settledWithin(asking, askedMs))) {
    const isThere = await Promise.race([asking.then(yes, yes), pulse.answers()])
    if (!isThere) throw noAnswer()
  }
  return await asking
}

export function noAnswer(): HoldfastError {
  return holdfastError('SHARD_NO_ANSWER')
}

function yes(): boolean {
  return true
}

const pulses = new WeakMap<Executor, Pulse>()

function pulseOf(alone: Executor, { ping }: Engine): Pulse {
  const pulse = pulses.get(alone) ?? new Pulse(alone, ping)
  pulses.set(alone, pulse)
  return pulse
}

/** Whether one primary answers, asked once for everybody. An error is an answer: only silence is none. */
class Pulse {
  silent = false
  readonly #alone: Executor
  readonly #ping: Statement
  #asking: Promise<boolean> | undefined
  #askedAt = -Infinity

  constructor(alone: Executor, ping: Statement) {
    this.#alone = alone
    this.#ping = ping
  }

  answers(): Promise<boolean> {
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined
    })
    return this.#asking
  }

  lookAgain(): void {
    if (performance.now() - this.#askedAt >= againMs) void this.answers()
  }

  async #ask(): Promise<boolean> {
    this.#askedAt = performance.now()
    const answer = this.#alone.query({ ...this.#ping, connectWithinMs: 2 * silenceMs })
    this.silent = !(await settledWithin(answer, silenceMs))
    // However late: then it is there again. An error that comes late may be our own, for want of a connection.
    if (this.silent)
      answer.then(
        () => (this.silent = false),
        () => undefined,
      )
    return !this.silent
  }
}
