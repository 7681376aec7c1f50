import type { Row } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import type { AmountReader, Balance } from './verdict.ts'

/** The one text of an answer; null where there is none. */
export function textAnswer(rows: readonly Row[]): string | null {
  const answer = rows[0]?.['answer']
  if (typeof answer === 'string' || answer === null) return answer
  throw holdfastError('LEDGER_ANSWER_UNREADABLE')
}

/** An answer in JSON, in which amounts and moments are texts, so that every client reads the same. */
export function jsonAnswer(rows: readonly Row[]): unknown {
  const answer = textAnswer(rows)
  return answer === null ? undefined : JSON.parse(answer)
}

/** Microseconds since 1970 as the Date that contains them. */
export function momentOf(micros: string | null): Date | undefined {
  return micros === null ? undefined : new Date(Number(BigInt(micros) / 1_000n))
}

/** A calendar window. */
export interface WindowBounds {
  readonly start: Date
  /** The first moment that is no longer part of it. */
  readonly end: Date
}

export interface StoredWindow {
  readonly start: string | null
  readonly end: string | null
}

export function windowBounds({ start, end }: StoredWindow): WindowBounds | undefined {
  const [since, until] = [momentOf(start), momentOf(end)]
  return since === undefined || until === undefined ? undefined : { start: since, end: until }
}

export interface StoredBalance {
  readonly seq: string
  readonly credited: string
  readonly debited: string
  readonly held: string
  readonly allowance: string
}

export function balanceOf<A>(stored: StoredBalance, amounts: AmountReader<A>): Balance<A> {
  const { seq, credited, debited, held, allowance } = stored
  const available = BigInt(credited) - BigInt(debited) - BigInt(held) + BigInt(allowance)
  return {
    available: amounts.read(String(available)),
    credited: amounts.read(credited),
    debited: amounts.read(debited),
    held: amounts.read(held),
    allowance: amounts.read(allowance),
    sequence: amounts.read(seq),
  }
}
