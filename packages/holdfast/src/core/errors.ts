import { type ErrorClass, type ErrorCode, errorCodes } from './error-codes.ts'
import type { ErrorDetailsOf } from './errors/error-details.ts'
import { channels, publish } from './events.ts'
import type { Blocker } from './events/event-map.ts'

/** Survives duplicate installs of the package, where `instanceof` does not. */
const brand: symbol = Symbol.for('holdfast.error')

/** What an error knows beyond its code, names of locks and leases included. Never contains statement parameters. */
export type ErrorDetails = Readonly<Record<string, unknown>>

/** What a new error is made of, besides its code. */
export interface ErrorContext {
  readonly details?: ErrorDetails
  /**
   * What the message says instead of `details.subject`, where that is a name of the caller's: keys and names
   * are often somebody's, and messages end up in logs. Empty says nothing.
   */
  readonly about?: string
  readonly blockers?: readonly Blocker[]
  readonly cause?: unknown
}

/**
 * Every error Holdfast raises. Branch on `code`, or on the class for what can be done about it.
 *
 * @example
 * try { await hf.guard(key, body) } catch (error) {
 *   if (isHoldfastError(error, 'LOCK_TIMEOUT')) return reply.code(503).send()
 *   throw error
 * }
 */
export class HoldfastError extends Error {
  readonly code: ErrorCode
  /** Running the whole operation again is safe and may succeed. */
  readonly retryable: boolean
  readonly details: ErrorDetails
  /** Who was in the way. Empty where the code is not about waiting, or nobody could be found. */
  readonly blockers: readonly Blocker[]

  constructor(code: ErrorCode, context: ErrorContext = {}) {
    const entry = errorCodes[code]
    super(describe(code, context), context.cause === undefined ? {} : { cause: context.cause })
    this.name = entry.class
    this.code = code
    this.retryable = entry.retryable
    this.details = Object.freeze({ ...context.details })
    this.blockers = Object.freeze([...(context.blockers ?? [])])
    Object.defineProperty(this, brand, { value: true })
    publish(channels.error, { code, error: this })
  }
}

/** A programming mistake: no retry helps, the code has to change. */
export class UsageError extends HoldfastError {}
/** A rule said no; nothing was changed. */
export class RefusedError extends HoldfastError {}
/** Somebody else was there; the same call may succeed later. */
export class ContentionError extends HoldfastError {}
/** We had it and no longer do: whatever relied on it has to stop. */
export class LostError extends HoldfastError {}
/** The commit may or may not have happened. Never repeat blindly. */
export class UnknownOutcomeError extends HoldfastError {}
/** The client or the connection, not the data. */
export class DriverError extends HoldfastError {}
/** The tables or functions in the database are not what this version expects. */
export class SchemaError extends HoldfastError {}

const classes: Record<ErrorClass, new (code: ErrorCode, context?: ErrorContext) => HoldfastError> =
  {
    UsageError,
    RefusedError,
    ContentionError,
    LostError,
    UnknownOutcomeError,
    DriverError,
    SchemaError,
  }

/** The details of an error with one of these codes. */
type DetailsOf<C extends ErrorCode> = C extends ErrorCode ? ErrorDetailsOf<C> : never

/** Makes the error of the class its code belongs to, with the details that the code has. */
export function holdfastError<C extends ErrorCode>(
  code: C,
  context?: Omit<ErrorContext, 'details'> & { readonly details?: DetailsOf<C> },
): HoldfastError {
  return new classes[errorCodes[code].class](code, context)
}

/** An error with this code, and the details that such an error has. */
export type HoldfastErrorOf<C extends ErrorCode> = C extends ErrorCode
  ? HoldfastError & { readonly code: C; readonly details: ErrorDetailsOf<C> }
  : never

/**
 * True for an error of this library, with one of the codes if any are given; also for one made by
 * another installed copy of it. `code` and `details` are then those of these codes.
 *
 * @example if (isHoldfastError(error, 'LOCK_TIMEOUT', 'LOCK_BUSY')) return reply.code(503).send()
 */
export function isHoldfastError<C extends ErrorCode = ErrorCode>(
  error: unknown,
  ...codes: readonly C[]
): error is HoldfastErrorOf<C> {
  if (typeof error !== 'object' || error === null || !(brand in error)) return false
  return codes.length === 0 || codes.includes((error as HoldfastErrorOf<C>).code as C)
}

function describe(code: ErrorCode, context: ErrorContext): string {
  const { what, next } = errorCodes[code]
  const subject = context.about ?? context.details?.['subject']
  const about = typeof subject === 'string' && subject !== '' ? ` (${subject})` : ''
  const first = context.blockers?.[0]
  const blocked = first === undefined ? '' : ` Blocked by ${blockerText(first)}.`
  return `${code}${about}: ${what}${blocked} ${next}`
}

function blockerText({ pid, name, ageMs, state }: Blocker): string {
  const parts = [`pid ${pid}`, withoutKey(name), `for ${Math.round(ageMs)} ms`, state]
  return parts.filter((part) => part !== '').join(', ')
}

/** Of `cart:alice` the `cart`: what comes first in a lock's name is its namespace. */
function withoutKey(name: string): string {
  const end = name.indexOf(':')
  return end === -1 ? name : name.slice(0, end)
}
