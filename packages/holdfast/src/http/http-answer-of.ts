import { isDate } from 'node:util/types'
import { type ErrorCode, errorCodes } from '../core/error-codes.ts'
import { holdfastError, type HoldfastError, isHoldfastError } from '../core/errors.ts'
import { notGiven } from '../core/options/given.ts'
import { type HttpAnswer, problem } from '../core/errors/http-answer.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import type { Refusal, Refused } from '../ledger/verdict.ts'
import { statusOf } from './status-of.ts'

/** Settings of the answers to errors. */
export interface HttpErrorOptions {
  /** Other statuses than those of the table, for some codes. @example statuses: { ROWS_MISSING: 404 } */
  readonly statuses?: Readonly<Partial<Record<ErrorCode, number>>>
  /**
   * Called with every error that is answered. The caller is told little, so that your log has to say the rest.
   * What it throws is not caught.
   */
  readonly log?: (error: HoldfastError, answer: HttpAnswer) => void
}

/** What a refused verdict has that decides its answer. */
type RefusedVerdict = Pick<Refused<unknown>, 'ok' | 'reason' | 'retryAt'>

const soonMs = 1_000

/**
 * The answer to an error of Holdfast, as `application/problem+json`; nothing for any other error. It says no more
 * than a caller may know: no message, no name of a lock, no blocker, and of a failure inside (500, 503) not even the
 * code. An outcome that is not known is told as `outcome: 'unknown'`.
 *
 * @example
 * const answer = httpAnswerOf(error)
 * if (answer === undefined) throw error
 * @throws OPTION_INVALID
 */
export function httpAnswerOf(
  error: unknown,
  options: HttpErrorOptions = {},
): HttpAnswer | undefined {
  return answersTo(options)(error)
}

function answered(error: unknown, options: HttpErrorOptions): HttpAnswer | undefined {
  if (!isHoldfastError(error)) return undefined
  const answer = answerTo(error, options)
  options.log?.(error, answer)
  return answer
}

function answerTo(error: HoldfastError, { statuses = {} }: HttpErrorOptions): HttpAnswer {
  const { code, details } = error
  const chosen = Object.hasOwn(statuses, code) ? statuses[code] : undefined
  const verdict = details['verdict']
  if (code === 'LEDGER_HOLD_REFUSED' && chosen === undefined && isRefused(verdict))
    return refusalAnswerOf(verdict)
  const { status: usual, again } = statusOf(code)
  const status = chosen ?? usual
  const inMs = details['retryInMs']
  const wait = again ? after(Number.isFinite(inMs) ? Number(inMs) : soonMs) : {}
  return withHeaders(problem(status, titleOf(status), toldOf(error, status)), wait)
}

/** Of a failure inside, callers learn nothing that would help them to cause another. */
function toldOf(error: HoldfastError, status: number): Record<string, unknown> {
  const { code, name, details } = error
  // A body that ended its transaction itself may have committed a part of its work.
  const parted =
    code === 'TX_ENDED_INSIDE' && ['committed', 'unknown'].includes(String(details['ended']))
  if (name === 'UnknownOutcomeError' || parted) return { outcome: 'unknown' }
  return status < 500 ? { code } : {}
}

/** Statuses of refused verdicts. `insufficient` is 429 if something comes back by itself, else 409. */
const refusals: Readonly<Record<Refusal, number>> = {
  insufficient: 409,
  conflict: 422,
  'not-found': 404,
  ended: 409,
  'too-large': 422,
  'over-refund': 409,
}

/**
 * The answer to a verdict of a quota, credits or stock that refused. Too little now and more later is 429 with
 * `Retry-After`, too little for good 409. It names neither the account nor what is left of it.
 *
 * @example
 * const verdict = await calls.consume(userId, 1, { operationId })
 * if (!verdict.ok) return refusalAnswerOf(verdict)
 * @example refusalAnswerOf(verdict, { statuses: { insufficient: 402 } }) // credits
 * @throws OPTION_INVALID
 */
export function refusalAnswerOf(
  verdict: RefusedVerdict,
  options: { readonly statuses?: Readonly<Partial<Record<Refusal, number>>> } = {},
): HttpAnswer {
  // An accepted one would be answered as not applied, and it was.
  if (!isRefused(verdict))
    throw notGiven('verdict', 'a verdict that refused: ask for its `ok` first')
  const { reason, retryAt } = verdict
  const { statuses = {} } = optionsGiven(options, knownOfRefusal)
  Object.values(statuses).forEach(assertStatus)
  // A verdict that went through JSON has a text there, of which nobody could say how long it is.
  if (retryAt !== undefined && (!isDate(retryAt) || Number.isNaN(retryAt.getTime())))
    throw notGiven('retryAt', 'a Date, as the verdict had it')
  const comesBack = reason === 'insufficient' && retryAt !== undefined
  const chosen = Object.hasOwn(statuses, reason) ? statuses[reason] : undefined
  const status = chosen ?? (comesBack ? 429 : (refusals[reason] ?? 409))
  // A hint and no decision: the clock of this process is good enough for it.
  const wait = comesBack ? after(retryAt.getTime() - Date.now()) : {}
  return withHeaders(problem(status, titleOf(status), { reason }), wait)
}

const knownOfRefusal = {
  statuses: {
    insufficient: 'checked',
    conflict: 'checked',
    'not-found': 'checked',
    ended: 'checked',
    'too-large': 'checked',
    'over-refund': 'checked',
  } satisfies Record<Refusal, 'checked'>,
} as const

function isRefused(value: unknown): value is RefusedVerdict {
  return typeof value === 'object' && value !== null && (value as { ok?: unknown }).ok === false
}

/** Whole seconds, and never so few that everybody comes back at once. */
function after(ms: number): Record<string, string> {
  return { 'retry-after': String(Math.max(1, Math.ceil(ms / 1_000))) }
}

function withHeaders(answer: HttpAnswer, more: Record<string, string>): HttpAnswer {
  return { ...answer, headers: { ...answer.headers, ...more } }
}

const known: KnownOptions<HttpErrorOptions> = { statuses: 'checked', log: 'function' }

/** `httpAnswerOf` with settings that are looked at once, when they are given. @throws OPTION_INVALID */
export function answersTo(
  given: HttpErrorOptions | undefined,
): (error: unknown) => HttpAnswer | undefined {
  const options = optionsGiven(given, known)
  for (const [code, status] of Object.entries(options.statuses ?? {})) {
    if (!Object.hasOwn(errorCodes, code)) {
      const subject = `statuses: ${code} is no code of an error`
      throw holdfastError('OPTION_INVALID', { details: { option: 'statuses', subject } })
    }
    assertStatus(status)
  }
  return (error) => answered(error, options)
}

/** Of one that was given. */
function assertStatus(status: unknown): void {
  if (status === undefined) return
  if (Number.isInteger(status) && (status as number) >= 400 && (status as number) <= 599) return
  const subject = 'a status must be a whole number from 400 to 599'
  throw holdfastError('OPTION_INVALID', { details: { option: 'statuses', subject } })
}

const titles: Readonly<Record<number, string>> = {
  402: 'Payment required',
  404: 'Not found',
  409: 'The request conflicts with what others did',
  422: 'The request cannot be carried out as it is',
  423: 'Somebody else is working on this; try again',
  429: 'Too many requests; try again later',
  503: 'Temporarily unavailable; try again',
}

function titleOf(status: number): string {
  return titles[status] ?? (status < 500 ? 'The request was refused' : 'Internal server error')
}
