import type { Driver, Executor, Row, Statement } from '../core/driver.ts'
import { type Duration, durationMs } from '../core/options/duration.ts'
import { holdfastError } from '../core/errors.ts'
import { declareBook } from '../engines/postgres/ledger/reads.ts'
import { askAgain } from '../tx/ask-again.ts'
import { askEach } from '../tx/ask-each.ts'
import { answerOf } from '../engines/postgres/sql/call-function.ts'
import type { AmountKind } from './book.ts'
import { assertPeriod, assertTimeZone, invalid, type Period } from './calendar.ts'
import type { Request } from './sending/request.ts'
import { objectGiven } from '../core/options/given.ts'

/**
 * What a book is. It is written down when the book is first used, and a process that declares it differently is
 * refused: the two would count in different accounts, or read each other's amounts wrong. Limits, overdrafts and
 * policies are not part of it and may differ.
 */
export interface BookDeclaration {
  readonly as: 'quota' | 'credits' | 'stock'
  /** Of a quota by calendar windows. */
  readonly per?: Period
  readonly timeZone?: string
  /** Of a quota over a rolling window. */
  readonly rolling?: Duration
  /** Of a quota that is a rate. */
  readonly rate?: Duration
  /** @defaultValue 'number' */
  readonly amounts?: AmountKind
}

/** A declaration as it is kept: the same words for the same thing. */
export type Declared = Readonly<Record<string, string>>

/** @throws OPTION_INVALID */
export function declaredOf(declaration: BookDeclaration): Declared {
  const { as, amounts = 'number' } = objectGiven(declaration, 'declaration')
  if (as !== 'quota' && as !== 'credits' && as !== 'stock') {
    throw invalid('as', 'as must be quota, credits or stock')
  }
  if (amounts !== 'number' && amounts !== 'bigint') {
    throw invalid('amounts', 'amounts must be number or bigint')
  }
  const windows = ['per', 'rolling', 'rate'].filter(
    (option) => declaration[option as 'per'] !== undefined,
  )
  if (windows.length !== (as === 'quota' ? 1 : 0)) {
    throw invalid('as', 'a quota, and nothing else, has one of per, rolling and rate')
  }
  return { as, amounts, ...windowOf(declaration) }
}

function windowOf({ per, timeZone, rolling, rate }: BookDeclaration): Declared {
  const milliseconds = (time: Duration, option: string): string => `${durationMs(time, option)} ms`
  if (timeZone !== undefined && (per === undefined || per === 'lifetime')) {
    throw invalid('timeZone', 'only calendar windows have a time zone')
  }
  if (rolling !== undefined) return { rolling: milliseconds(rolling, 'rolling') }
  if (rate !== undefined) return { rate: milliseconds(rate, 'rate') }
  if (per === undefined) return {}
  assertPeriod(per)
  if (per === 'lifetime') return { per }
  assertTimeZone(timeZone ?? 'UTC')
  return { per, timeZone: timeZone ?? 'UTC' }
}

/** Whether every window of a key is an account of its own. */
export function hasWindows({ per = 'lifetime' }: Declared): boolean {
  return per !== 'lifetime'
}

/** One option that two declarations of a book do not agree on. */
interface Difference {
  readonly option: string
  readonly kept: string | undefined
  readonly here: string | undefined
}

function differences(kept: Declared, here: Declared): readonly Difference[] {
  const options = [...new Set([...Object.keys(kept), ...Object.keys(here)])]
  return options
    .map((option) => ({ option, kept: kept[option], here: here[option] }))
    .filter((each) => each.kept !== each.here)
}

/** @throws LEDGER_BOOK_DIFFERS */
function assertAlike(book: string, kept: Declared, here: Declared): void {
  const differs = differences(kept, here)
  if (differs.length === 0) return
  const words = differs.map(
    ({ option, kept: was = 'none', here: is = 'none' }) => `${option} ${was}, here ${is}`,
  )
  throw holdfastError('LEDGER_BOOK_DIFFERS', {
    details: { book, differs, subject: `${book}: ${words.join('; ')}` },
  })
}

/** The answer to who was first. */
const writtenDown = 'new'

/** The books that a process declares, and which of them are known to be the database's. */
export class Books<Tx> {
  readonly #driver: Driver<Tx>
  readonly #schema: string
  readonly #forMs: number
  readonly #declared = new Map<string, Declared>()
  /** Of a book, the primaries that keep the same declaration. */
  readonly #alike = new Map<string, Set<string>>()
  readonly #comparing = new Map<string, Promise<void>>()
  /** Whether `apply_debit` is known to be there, on the only primary there is. */
  hasDebit = false

  constructor(driver: Driver<Tx>, schema: string, forMs: number) {
    this.#driver = driver
    this.#schema = schema
    this.#forMs = forMs
  }

  /** @throws LEDGER_BOOK_DIFFERS if this process has declared it differently before */
  declare(book: string, declaration: BookDeclaration): void {
    const here = declaredOf(declaration)
    const before = this.#declared.get(book)
    if (before !== undefined) assertAlike(book, before, here)
    this.#declared.set(book, here)
  }

  /** At once, where everything is known. @throws LEDGER_BOOK_DIFFERS */
  compared(tx: Tx | undefined, { operation, buckets }: Request): Promise<void> | undefined {
    const place = this.#placeOf(buckets)
    for (const { book } of operation.lines) {
      if (this.#isUnsure(book, place)) return this.#compareAll(tx, operation.lines, buckets)
    }
    return undefined
  }

  /** Whether this book is known to be the database's, on the only primary there is. */
  isSure(book: string): boolean {
    return !this.#isUnsure(book, '')
  }

  /** For one book that is only looked at. @throws LEDGER_BOOK_DIFFERS */
  async compare(tx: Tx | undefined, book: string, buckets: readonly number[]): Promise<void> {
    await this.#compareAll(tx, [{ book }], buckets)
  }

  /** What a book was declared as, by this process or by whoever used it first. */
  async declarationOf(book: string): Promise<Declared | undefined> {
    const here = this.#declared.get(book)
    if (here !== undefined) return here
    const { answers, failure } = await askEach(this.#driver, async ({ alone }) =>
      answerOf(await this.#askAlone(alone, declareBook(this.#schema, book, null, []))),
    )
    const kept = answers.find((answer) => answer !== null)
    if (kept !== undefined && kept !== null) return JSON.parse(kept) as Declared
    // One that could not be asked may be the one that knows.
    if (failure !== undefined) throw failure
    return undefined
  }

  #isUnsure(book: string, place: string | undefined): boolean {
    return (
      this.#declared.has(book) &&
      (place === undefined || this.#alike.get(book)?.has(place) !== true)
    )
  }

  async #compareAll(
    tx: Tx | undefined,
    lines: readonly { readonly book: string }[],
    buckets: readonly number[],
  ): Promise<void> {
    for (const book of new Set(lines.map((line) => line.book))) {
      const place = this.#placeOf(buckets)
      if (!this.#isUnsure(book, place)) continue
      if (tx !== undefined) {
        await this.#compareOne(tx, book, buckets)
        continue
      }
      // Many may come at once, and one of them asks.
      const id = `${place ?? ''}/${book}`
      const under = this.#comparing.get(id)
      const comparing =
        under ??
        this.#compareOne(tx, book, buckets).finally(() => {
          this.#comparing.delete(id)
        })
      this.#comparing.set(id, comparing)
      await comparing
    }
  }

  async #compareOne(tx: Tx | undefined, book: string, buckets: readonly number[]): Promise<void> {
    const here = this.#declared.get(book) as Declared
    const statement = declareBook(this.#schema, book, JSON.stringify(here), buckets)
    const rows =
      tx === undefined
        ? await this.#askAlone(this.#driver.alone, statement)
        : await this.#driver.join(tx).query(statement)
    this.hasDebit = this.#driver.shards === undefined && String(rows[0]?.['debits']) === '1'
    const answer = answerOf(rows)
    // Not known before a transaction that was first has ended, which may be this one: the next call asks again.
    if (answer === null || (answer === writtenDown && tx !== undefined)) return
    if (answer !== writtenDown) assertAlike(book, JSON.parse(answer) as Declared, here)
    const place = this.#placeOf(buckets)
    if (place === undefined) return
    const alike = this.#alike.get(book) ?? new Set()
    this.#alike.set(book, alike.add(place))
  }

  async #askAlone(executor: Executor, statement: Statement): Promise<readonly Row[]> {
    const asking = { forMs: this.#forMs, unknown: 'CONNECTION_LOST' } as const
    return await askAgain(() => executor.query(statement), asking)
  }

  /** The primary; undefined while it is not known which. */
  #placeOf(buckets: readonly number[]): string | undefined {
    const { shards } = this.#driver
    return shards === undefined ? '' : shards.guess(buckets)
  }
}
