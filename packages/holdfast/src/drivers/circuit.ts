import type { Driver, SessionDriver, TransactionSettings } from '../core/driver.ts'
import { type Duration, durationMs } from '../core/options/duration.ts'
import { holdfastError, isHoldfastError } from '../core/errors.ts'
import { couldNotConnect, isConnectionLoss, sqlStateOf } from '../core/sql-state.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import { assertDriver } from '../core/client-kind.ts'

/** Settings of `withCircuit`. */
export interface CircuitOptions {
  /** After how many failures in a row it opens. @defaultValue 5 */
  readonly failures?: number
  /** How long nothing is sent before one call may try again. @defaultValue '5 s' */
  readonly openFor?: Duration
}

const circuitOptions: KnownOptions<CircuitOptions> = {
  failures: 'checked',
  openFor: 'checked',
}

/**
 * A driver that stops asking a database which cannot be reached: after some failures in a row every call
 * is refused at once with CIRCUIT_OPEN, until one that is let through after a while succeeds. It never lets
 * work through unprotected: a call that is refused has done nothing.
 *
 * @example const hf = createHoldfast(withCircuit(fromPg(pool)))
 */
export function withCircuit<Tx>(
  driver: SessionDriver<Tx>,
  options?: CircuitOptions,
): SessionDriver<Tx>
export function withCircuit<Tx>(driver: Driver<Tx>, options?: CircuitOptions): Driver<Tx>
export function withCircuit<Tx>(driver: Driver<Tx>, options: CircuitOptions = {}): Driver<Tx> {
  assertDriver(driver, 'withCircuit')
  const circuit = new Circuit(optionsGiven(options, circuitOptions))
  const { session, listen } = driver as Partial<SessionDriver<Tx>>
  return {
    ...driver,
    alone: { query: (statement) => circuit.through(() => driver.alone.query(statement)) },
    transaction: (body, settings) => inTransaction(circuit, driver, body, settings),
    ...(session && { session: (scope?: string) => circuit.through(() => session(scope)) }),
    ...(listen && {
      listen: (...args: Parameters<typeof listen>) => circuit.through(() => listen(...args)),
    }),
  }
}

/**
 * A transaction, of which only what is ours counts: to open it and to commit it. Whatever the body throws is
 * the body's own, also if it looks like a lost connection: it may be one to somewhere else. If it was ours,
 * the next call finds out.
 */
async function inTransaction<Tx, T>(
  circuit: Circuit,
  driver: Driver<Tx>,
  body: Parameters<Driver<Tx>['transaction']>[0],
  settings: TransactionSettings,
): Promise<T> {
  let isBodys = false
  return await circuit.through(
    (answered) =>
      driver.transaction(async (transaction, opened) => {
        // What went out together with BEGIN is not answered before its own answer is there.
        if (opened === undefined) answered()
        let unopened = false
        opened?.then(answered, (error: unknown) => {
          unopened = isOutage(error)
          if (!unopened) answered()
        })
        try {
          return (await body(transaction, opened)) as T
        } catch (error) {
          isBodys = !unopened
          throw error
        }
      }, settings),
    () => isBodys,
  )
}

class Circuit {
  readonly #most: number
  readonly #openMs: number
  #failures = 0
  /** When one call may try; nothing if it is closed. */
  #opensAt: number | undefined
  #trying = false

  constructor({ failures = 5, openFor = '5 s' }: CircuitOptions) {
    if (!Number.isSafeInteger(failures) || failures < 1) {
      throw holdfastError('OPTION_INVALID', {
        details: { option: 'failures', subject: 'failures must be a whole number, 1 or more' },
      })
    }
    this.#most = failures
    this.#openMs = durationMs(openFor, 'openFor')
  }

  /**
   * Sends something, unless it is open. `answered` says, before all is done, that the database is there;
   * `isForeign` that what was thrown says nothing about it.
   */
  async through<T>(
    call: (answered: () => void) => Promise<T>,
    isForeign: () => boolean = () => false,
  ): Promise<T> {
    let tries = this.#assertClosed()
    const answered = (): void => {
      if (!tries) return
      tries = false
      this.#trying = false
      this.#close()
    }
    try {
      const result = await call(answered)
      this.#close()
      return result
    } catch (error) {
      if (isForeign()) this.#failures = 0
      else if (isOutage(error)) this.#fail(tries)
      // It was answered, if only by an error. What was never sent says nothing.
      else if (sqlStateOf(error) !== undefined || isHoldfastError(error, 'COMMIT_UNKNOWN'))
        this.#close()
      throw error
    } finally {
      if (tries) this.#trying = false
    }
  }

  /** True for the one call that finds out whether the database is back. */
  #assertClosed(): boolean {
    if (this.#opensAt === undefined) return false
    const retryInMs = Math.ceil(this.#opensAt - performance.now())
    if (retryInMs <= 0 && !this.#trying) {
      this.#trying = true
      return true
    }
    throw holdfastError('CIRCUIT_OPEN', { details: { retryInMs: Math.max(1, retryInMs) } })
  }

  #close(): void {
    this.#failures = 0
    this.#opensAt = undefined
  }

  #fail(tried: boolean): void {
    this.#failures += 1
    if (tried || this.#failures >= this.#most) this.#opensAt = performance.now() + this.#openMs
  }
}

/** The database, and not what was asked of it. A pool that is too small is no outage. */
function isOutage(error: unknown): boolean {
  if (isHoldfastError(error)) {
    const { code, cause } = error
    // Without a cause it was the standby that did not answer.
    if (code === 'COMMIT_UNKNOWN') return cause !== undefined
    return code === 'CONNECTION_LOST' || code === 'CONNECTION_UNAVAILABLE'
  }
  return couldNotConnect(error) || isConnectionLoss(error)
}
