import type { Crowd } from '../../core/activity.ts'
import { failedAtCaller } from '../../core/errors/at-caller.ts'
import { holdfastError } from '../../core/errors.ts'
import type { Words } from '../../engines/postgres/sql/uuid-words.ts'
import type { NewLine } from '../../engines/postgres/ledger/new-lines.ts'
import type { AccountId } from '../account-id.ts'
import { kinds, type Line } from '../operation.ts'
import type { Accepted, Verdict } from '../verdict.ts'
import type { LineAnswer } from './answer.ts'
import type { Told } from './ledger-events.ts'
import { type Request, requestOf } from './request.ts'
import { Waiting, ways } from './waiting.ts'

/** What all calls of one book share. */
export interface NewCalls {
  readonly book: string
  readonly kind: Line['kind']
  /** Reads an answer that came the longer way. */
  verdict(request: Request, answers: readonly LineAnswer[]): Verdict<number>
  /** What its caller is told of a failure. */
  failure(error: unknown): unknown
}

/** One line whose amounts are numbers, and nothing else about it; see `apply_new`. */
export interface ShortLine {
  readonly key: string
  readonly account: AccountId
  readonly amount: number
  readonly allowance: number
  readonly operationId: string
  readonly idWords: Words
}

/**
 * One line on its way, as plain as can be: one object and one promise for an operation. Whatever is not usual about it is
 * done with the `Request` that it can be turned into.
 */
export class NewCall extends Waiting implements NewLine {
  readonly of: NewCalls
  readonly key: string
  readonly account: AccountId
  readonly amount: number
  readonly allowance: number
  readonly operationId: string
  readonly idWords: Words
  readonly verdict: Promise<Verdict<number>>
  readonly #resolve: (verdict: Verdict<number> | Promise<never>) => void
  readonly #crowd: Crowd
  #request: Request | undefined

  constructor(
    of: NewCalls,
    { key, account, amount, allowance, operationId, idWords }: ShortLine,
    since: number,
    limitMs: number,
    crowd: Crowd,
  ) {
    super(ways.fresh, since, limitMs)
    this.of = of
    this.key = key
    this.account = account
    this.amount = amount
    this.allowance = allowance
    this.operationId = operationId
    this.idWords = idWords
    const { promise, resolve } = Promise.withResolvers<Verdict<number>>()
    this.verdict = promise
    this.#resolve = resolve
    this.#crowd = crowd
    this.#request = undefined
  }

  get kind(): Line['kind'] {
    return this.of.kind
  }

  get owner(): undefined {
    return undefined
  }

  get givenId(): undefined {
    return undefined
  }

  get id(): string {
    return this.operationId
  }

  get lines(): number {
    return 1
  }

  get base(): string {
    return this.account.base
  }

  get about(): Told['about'] {
    const { operationId, of, key } = this
    return { operationId, book: of.book, lines: [{ kind: of.kind, key }] }
  }

  get request(): Request {
    this.#request ??= this.#made()
    return this.#request
  }

  #made(): Request {
    const { of, operationId, key, amount, allowance } = this
    const { book, kind } = of
    const line = { kind, book, key, amount: String(amount), allowance: String(allowance) }
    return requestOf({ operationId, book, lines: [line] }, true)
  }

  /** It was applied, now. */
  accept(verdict: Verdict<number>): void {
    this.leave()
    this.#crowd.over()
    this.#resolve(verdict)
  }

  protected answer(answers: LineAnswer[]): void {
    let verdict: Verdict<number>
    try {
      verdict = this.of.verdict(this.request, answers)
    } catch (error) {
      this.fail(error)
      return
    }
    this.#crowd.over()
    this.#resolve(verdict)
  }

  protected fail(error: unknown): void {
    this.#crowd.over()
    this.#resolve(failedAtCaller(this.of.failure(error)))
  }
}

/** How many numbers the answer has for an account. */
const stride = 7

/** What an account has, before and after each line. */
export interface Counted {
  sequence: number
  credited: number
  debited: number
  readonly held: number
  /** Microseconds. */
  readonly at: number
}

/**
 * What every line has left behind, counted from what its account has after the last of them; `tell` must not keep what
 * it is given. Nothing for lines that were left out.
 */
export function newAnswers<L extends NewLine, T>(
  text: unknown,
  lines: readonly L[],
  tell: (line: L, counted: Counted) => T,
): readonly (T | undefined)[] {
  const numbers = numbersIn(text)
  const known = new Map<string, number>()
  const groups: Group[] = []
  const groupOf = new Uint32Array(lines.length)
  for (let at = 0; at < lines.length; at += 1) {
    const { account, kind, amount } = lines[at] as L
    let group = known.get(account.base)
    if (group === undefined) {
      group = groups.length
      known.set(account.base, group)
      groups.push({ lines: 0, credits: 0, debits: 0, counted: undefined })
    }
    groupOf[at] = group
    const sums = groups[group] as Group
    sums.lines += 1
    if (kind === kinds.debit) sums.debits += amount
    else sums.credits += amount
  }
  const moment = numbers[0] as number
  for (let at = 1; at < numbers.length; at += stride) {
    const group = groups[groupOf[(numbers[at] as number) - 1] ?? -1]
    // A line that was left out alone would shift those after it.
    if (group === undefined || group.lines !== numbers[at + 1]) throw unreadable()
    group.counted = {
      sequence: (numbers[at + 2] as number) - group.lines,
      credited: (numbers[at + 3] as number) - group.credits,
      debited: (numbers[at + 4] as number) - group.debits,
      held: numbers[at + 5] as number,
      at: moment + (numbers[at + 6] as number),
    }
  }
  return lines.map((line, at) => {
    const { counted } = groups[groupOf[at] as number] as Group
    if (counted === undefined) return undefined
    counted.sequence += 1
    if (line.kind === kinds.debit) counted.debited += line.amount
    else counted.credited += line.amount
    return tell(line, counted)
  })
}

/** The same as what their callers are told. */
export function newVerdicts(
  text: unknown,
  calls: readonly NewCall[],
): readonly (Accepted<number> | undefined)[] {
  return newAnswers(text, calls, verdictAfter)
}

interface Group {
  lines: number
  credits: number
  debits: number
  counted: Counted | undefined
}

function numbersIn(text: unknown): readonly number[] {
  let numbers: unknown
  try {
    numbers = typeof text === 'string' ? JSON.parse(text) : undefined
  } catch {
    throw unreadable()
  }
  if (Array.isArray(numbers) && numbers.length % stride === 1) {
    if (numbers.every((number) => Number.isSafeInteger(number))) return numbers as number[]
  }
  throw unreadable()
}

function unreadable(): Error {
  return holdfastError('LEDGER_ANSWER_UNREADABLE')
}

/** The database has refused what would not be exact. */
function verdictAfter({ of, key, allowance }: NewCall, counted: Counted): Accepted<number> {
  const { book } = of
  const { sequence, credited, debited, held } = counted
  const available = credited - debited + (allowance - held)
  return {
    ok: true,
    replayed: false,
    at: new Date(Math.floor(counted.at / 1_000)),
    holdId: undefined,
    expiresAt: undefined,
    taken: undefined,
    available,
    credited,
    debited,
    held,
    allowance,
    sequence,
    lines: [
      { book, key, refusal: undefined, available, credited, debited, held, allowance, sequence },
    ],
  }
}
