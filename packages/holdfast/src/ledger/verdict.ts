import { holdfastError } from '../core/errors.ts'
import type { Balance, LineVerdict, Refusal, Refused } from '../core/errors/refused.ts'
import { type LineAnswer, statuses } from './sending/answer.ts'
import { flags, kinds, type Line } from './operation.ts'
import type { Request } from './sending/request.ts'

export type { Balance, HoldState, LineVerdict, Refusal, Refused } from '../core/errors/refused.ts'

/** The operation was applied, now or before. */
export interface Accepted<A> extends Balance<A> {
  readonly ok: true
  /** This id had been applied before; this is the answer it got then. */
  readonly replayed: boolean
  readonly at: Date
  /** Of a hold: settle, release or extend it by this id, from anywhere. */
  readonly holdId: string | undefined
  /** Of a hold: when it expires by itself; of one with several lines, the first of them. */
  readonly expiresAt: Date | undefined
  /** With `upTo`: how much was taken. */
  readonly taken: A | undefined
  readonly lines: readonly LineVerdict<A>[]
}

/** The answer to an operation: accepted with balances, or refused with the reason. */
export type Verdict<A> = Accepted<A> | Refused<A>

/** How amounts come back: numbers that are checked to be exact, or bigints. */
export interface AmountReader<A> {
  /** Amounts have to be exact as numbers. */
  readonly numbers: boolean
  read(text: string): A
  /** credited − debited − held + allowance */
  available(credited: A, debited: A, held: A, allowance: A): A
  /** What is available without a part of it. */
  less(available: A, part: string): A
}

function exact(value: number): number {
  if (Number.isSafeInteger(value)) return value
  throw holdfastError('LEDGER_AMOUNT_UNSAFE')
}

export const numberAmounts: AmountReader<number> = {
  numbers: true,
  read: (text) => exact(Number(text)),
  // Two differences first: none of the steps is larger than what is checked.
  available: (credited, debited, held, allowance) =>
    exact(exact(credited - debited) + exact(allowance - held)),
  less: (available, part) => exact(available - exact(Number(part))),
}

export const bigintAmounts: AmountReader<bigint> = {
  numbers: false,
  read: (text) => BigInt(text),
  available: (credited, debited, held, allowance) => credited - debited - held + allowance,
  less: (available, part) => available - BigInt(part),
}

const refusals: Readonly<Record<number, Refusal>> = {
  [statuses.short]: 'insufficient',
  [statuses.conflict]: 'conflict',
  [statuses.unknown]: 'not-found',
  [statuses.ended]: 'ended',
  [statuses.tooLarge]: 'too-large',
  [statuses.overRefund]: 'over-refund',
  [statuses.twice]: 'conflict',
}

/** Why the answers refuse, if they do; a refusal that was remembered included. */
export function refusalIn(answers: readonly LineAnswer[]): Refusal | undefined {
  for (const answer of answers) {
    const refusal = refusals[unwrapped(answer).status]
    if (refusal !== undefined) return refusal
  }
  return undefined
}

/** How a hold, or of these the last and `expired` a grant, can have ended. */
const endings: readonly Refused<unknown>['state'][] = [
  'open',
  'settled',
  'released',
  'expired',
  'settled-late',
  'voided',
]

/** Turns the answers to one request into its verdict. */
export function verdictOf<A>(
  request: Request,
  answers: readonly LineAnswer[],
  amounts: AmountReader<A>,
): Verdict<A> {
  const [only] = answers
  if (only?.status === statuses.accepted && answers.length === 1) {
    return accepted(request, only, amounts)
  }
  const remembered = answers.map(unwrapped)
  const blocking = remembered.find(({ status }) => refusals[status] !== undefined)
  const first = blocking ?? remembered[0]
  const unexplained =
    blocking === undefined && remembered.some(({ status }) => status > statuses.replayed)
  if (first === undefined || unexplained) throw holdfastError('LEDGER_ANSWER_UNREADABLE')
  const offset = request.operation.lines.length === 1 ? 0 : firstLineOf(answers)
  const lineOf = (answer: LineAnswer): Line | undefined =>
    request.operation.lines[answer.line - offset] ?? request.operation.lines[0]
  const lines = remembered.map((answer) => {
    const line = lineOf(answer)
    return {
      book: line?.book ?? request.operation.book,
      key: line?.key,
      refusal: refusals[answer.status],
      ...balanceOf(answer, amounts),
    }
  })
  const replayed = answers.some(
    ({ status }) => status === statuses.replayed || status === statuses.refusedBefore,
  )
  if (blocking === undefined) {
    return {
      ok: true,
      replayed,
      at: dateOf(first.at) ?? new Date(0),
      holdId: request.holdId,
      expiresAt: earliest(remembered.map((answer) => expiryIn(lineOf(answer), answer))),
      taken: takenIn(request, first, amounts),
      ...balanceOf(first, amounts),
      lines,
    }
  }
  const reason = refusals[blocking.status] as Refusal
  const line = lines[remembered.indexOf(blocking)]
  const balance = balanceOf(blocking, amounts)
  const [retry, apart] = reason === 'insufficient' ? (blocking.extra ?? '').split('/') : []
  return {
    ok: false,
    reason,
    book: line?.book ?? request.operation.book,
    key: line?.key,
    spendable: apart === undefined ? balance.available : amounts.less(balance.available, apart),
    retryAt: dateOf(retry),
    field: reason === 'conflict' ? (blocking.extra ?? 'operationId') : undefined,
    state: reason === 'ended' ? endings[Number(blocking.extra)] : undefined,
    replayed: answers.some(({ status }) => status === statuses.refusedBefore),
    ...balance,
    lines,
  }
}

/** The usual verdict, with its numbers read once. */
function accepted<A>(request: Request, answer: LineAnswer, amounts: AmountReader<A>): Accepted<A> {
  const [line] = request.operation.lines
  const book = line?.book ?? request.operation.book
  const credited = amounts.read(answer.credited)
  const debited = amounts.read(answer.debited)
  const held = amounts.read(answer.held)
  const allowance = amounts.read(answer.allowance)
  const available = amounts.available(credited, debited, held, allowance)
  const sequence = amounts.read(answer.seq)
  const key = line?.key
  const refusal = undefined
  return {
    ok: true,
    replayed: false,
    at: dateOf(answer.at) ?? new Date(0),
    holdId: request.holdId,
    expiresAt: expiryIn(line, answer),
    taken: takenIn(request, answer, amounts),
    available,
    credited,
    debited,
    held,
    allowance,
    sequence,
    lines: [{ book, key, refusal, available, credited, debited, held, allowance, sequence }],
  }
}

/** Of a line that makes or extends a hold. */
function expiryIn(line: Line | undefined, { extra }: LineAnswer): Date | undefined {
  return line?.kind === kinds.hold || line?.kind === kinds.extend ? dateOf(extra) : undefined
}

function earliest(dates: readonly (Date | undefined)[]): Date | undefined {
  const times = dates.flatMap((date) => (date === undefined ? [] : [date.getTime()]))
  return times.length === 0 ? undefined : new Date(Math.min(...times))
}

function takenIn<A>(
  { operation: { lines } }: Request,
  { extra }: LineAnswer,
  amounts: AmountReader<A>,
): A | undefined {
  const [line] = lines
  if (lines.length !== 1 || ((line?.flags ?? 0) & flags.upTo) === 0) return undefined
  return amounts.read(extra ?? (line?.amount as string))
}

/** Answers number all lines of a call; those of one request begin at its own first. */
function firstLineOf(answers: readonly LineAnswer[]): number {
  return Math.min(...answers.map(({ line }) => line))
}

/** A remembered refusal carries the answer it was given then. */
function unwrapped(answer: LineAnswer): LineAnswer {
  if (answer.status !== statuses.refusedBefore || answer.extra === undefined) return answer
  const [, status, seq, credited, debited, held, allowance, , ...extra] = answer.extra.split(',')
  return {
    ...answer,
    status: Number(status),
    seq: seq ?? answer.seq,
    credited: credited ?? answer.credited,
    debited: debited ?? answer.debited,
    held: held ?? answer.held,
    allowance: allowance ?? answer.allowance,
    extra: extra.length === 0 ? undefined : extra.join(','),
  }
}

function balanceOf<A>(answer: LineAnswer, amounts: AmountReader<A>): Balance<A> {
  const credited = amounts.read(answer.credited)
  const debited = amounts.read(answer.debited)
  const held = amounts.read(answer.held)
  const allowance = amounts.read(answer.allowance)
  return {
    available: amounts.available(credited, debited, held, allowance),
    credited,
    debited,
    held,
    allowance,
    sequence: amounts.read(answer.seq),
  }
}

function dateOf(micros: string | undefined): Date | undefined {
  if (micros === undefined || micros === '') return undefined
  return new Date(Math.floor(Number(micros) / 1_000))
}
