import type { Driver, SessionDriver } from '../core/driver.ts'
import { type Duration, durationMs } from '../core/duration.ts'
import { holdfastError, isHoldfastError } from '../core/errors.ts'
import { couldNotConnect, isConnectionLoss } from '../core/sql-state.ts'

/** Settings of `withCircuit`. */
export interface CircuitOptions {
  /** After how many failures in a row it opens. @defaultValue 5 */
  readonly failures?: number
  /** How long nothing is sent before one call may try again. @defaultValue '5 s' */
  readonly openFor?: Duration
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
  const circuit = new Circuit(options)
  const { session, listen } = driver as Partial<SessionDriver<Tx>>
  return {
    ...driver,
    alone: { query: (statement) => circuit.through(() => driver.alone.query(statement)) },
    transaction: (body, settings) => circuit.through(() => driver.transaction(body, settings)),
    ...(session && { session: (scope?: string) => circuit.through(() => session(scope)) }),
    ...(listen && {
      listen: (...args: Parameters<typeof listen>) => circuit.through(() => listen(...args)),
    }),
  }
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

  async through<T>(call: () => Promise<T>): Promise<T> {
    const tries = this.#assertClosed()
    try {
      const result = await call()
      this.#close()
      return result
    } catch (error) {
      if (isOutage(error)) this.#fail(tries)
      // It was answered, if only by an error.
      else this.#close()
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
