import { type Driver, primariesOf, type Row } from '../../core/driver.ts'
import { momentText } from '../../core/options/moment-text.ts'
import { listKeys, readUsage } from '../../engines/postgres/ledger/reads.ts'
import { askOne } from '../../tx/ask-each.ts'
import { needingSchema } from '../../engines/postgres/sql/call-function.ts'
import { assertNotNested } from '../../tx/run.ts'
import { type AmountKind, type AmountOf, amountReader, amounts } from '../book.ts'
import { assertPeriod, assertTimeZone, countOf, invalid, type Period } from '../calendar.ts'
import type { Kernel } from '../kernel.ts'
import { type Key, nameText } from '../operation.ts'
import type { AccountBalance } from './reading.ts'
import { accountBalanceOf, type StoredAccount } from './reads.ts'
import { jsonAnswer, momentOf } from '../stored-text.ts'
import { type KnownOptions, optionsGiven } from '../../core/options/known-options.ts'

/** Options of `keys`. */
export interface KeysOptions<K extends AmountKind = 'number'> {
  /** `next` of the page before. */
  readonly after?: string | undefined
  /** How many keys, 1 to 1000. @defaultValue 100 */
  readonly limit?: number
  /** @defaultValue 'number' */
  readonly amounts?: K
}

/** A key of a book, and what it stands at. */
export interface KeyBalance<A> extends AccountBalance<A> {
  readonly key: string
  readonly scope: string
}

/** A page of keys. */
export interface Keys<A> {
  /** One for each scope that a key is used with. */
  readonly keys: readonly KeyBalance<A>[]
  /** Pass it as `after` to get the next ones; undefined at the end. After a full page there may be none. */
  readonly next: string | undefined
}

/** By what usage is told apart. */
export type UsageBy = 'key' | 'scope' | 'feature'

/** Options of `usage`. */
export interface UsageOptions<K extends AmountKind = 'number'> {
  readonly from: Date
  /** The first moment that is not part of it. */
  readonly to: Date
  /** Told apart by calendar periods. @defaultValue all as one */
  readonly per?: Exclude<Period, 'minute' | 'lifetime'>
  /** @defaultValue 'UTC' */
  readonly timeZone?: string
  /** @defaultValue none */
  readonly by?: readonly UsageBy[]
  /** Of this key only. */
  readonly key?: Key
  /** Of this scope only. */
  readonly scope?: string
  /** @defaultValue 'number' */
  readonly amounts?: K
}

const keysOptions: KnownOptions<KeysOptions<AmountKind>> = {
  after: 'checked',
  limit: 'checked',
  amounts: amounts,
}

const usageOptions: KnownOptions<UsageOptions<AmountKind>> = {
  from: 'checked',
  to: 'checked',
  per: 'checked',
  timeZone: 'checked',
  by: 'checked',
  key: 'checked',
  scope: 'checked',
  amounts: amounts,
}

/** What was used. */
export interface UsageRow<A> {
  /** When its period began; undefined without `per`. */
  readonly period: Date | undefined
  /** Undefined unless usage is told apart by it. */
  readonly key: string | undefined
  readonly scope: string | undefined
  /** That of the operations; undefined also for those without. */
  readonly feature: string | undefined
  /** What was taken or settled, less what was refunded. */
  readonly used: A
  readonly refunded: A
  /** How much of it went beyond the limit in force, or below zero where there is none. */
  readonly over: A
  readonly movements: number
}

/** A report. */
export interface Usage<A> {
  /** In the order of period, key, scope and feature. */
  readonly rows: readonly UsageRow<A>[]
  /** Nothing was dropped or forgotten by `maintain` that would have counted; if false, it may have been. */
  readonly complete: boolean
}

/** Reports over whole books. */
export interface LedgerReports {
  /**
   * The keys of a book in their order, with what they stand at.
   *
   * @example
   * let page = await hf.ledger.keys('credits')
   * while (page.next !== undefined) page = await hf.ledger.keys('credits', { after: page.next })
   * @throws OPTION_INVALID, LEDGER_NAME_INVALID, LEDGER_AMOUNT_UNSAFE, SCHEMA_MISSING, TX_NESTED, SHARD_PRIMARY_FAILED
   */
  keys<K extends AmountKind = 'number'>(
    book: string,
    options?: KeysOptions<K>,
  ): Promise<Keys<AmountOf<K>>>
  /**
   * What was used of a book, by period, key and feature. Adds up movements: with many of them it takes its time, so ask a
   * replica, or follow them and keep sums of your own. At most 10,000 rows.
   *
   * @example
   * await hf.ledger.usage('credits', { from, to, per: 'month', by: ['key', 'feature'] })
   * @throws OPTION_INVALID, LEDGER_NAME_INVALID, LEDGER_AMOUNT_UNSAFE, SCHEMA_MISSING, TX_NESTED, SHARD_PRIMARY_FAILED
   */
  usage<K extends AmountKind = 'number'>(
    book: string,
    options: UsageOptions<K>,
  ): Promise<Usage<AmountOf<K>>>
}

interface StoredKeys {
  readonly keys: readonly (StoredAccount & { readonly key: string; readonly scope: string })[]
  readonly next: string | null
}

interface StoredUsage {
  readonly period: string | null
  readonly key: string | null
  readonly scope: string | null
  readonly feature: string | null
  readonly used: string
  readonly refunded: string
  readonly over: string
  readonly movements: number
}

const mostRows = 10_000

export function createReports<Tx>(kernel: Kernel<Tx>): LedgerReports {
  return {
    async keys(book, given) {
      const {
        after,
        limit = 100,
        amounts,
      } = optionsGiven(given, keysOptions as KnownOptions<KeysOptions<AmountKind>>)
      const name = nameText(book, 'book')
      const most = countOf(limit, 'limit')
      const reader = amountReader((amounts ?? 'number') as AmountKind)
      const primaries = primariesOf(kernel.driver)
      let { at, key } = placeOf(after, primaries.length)
      const keys: KeyBalance<unknown>[] = []
      let next: string | undefined
      // One primary after the other; what is left of a page is filled by the next one.
      for (let room = most; at < primaries.length && room > 0; at += 1) {
        const beyond = at + 1 < primaries.length ? JSON.stringify([at + 1, null]) : undefined
        let stored: StoredKeys
        try {
          stored = await readKeys(kernel, at, { book: name, after: key, most: room }, beyond)
        } catch (error) {
          // What the primaries before it gave is told first; the next page says what is wrong.
          if (keys.length === 0) throw error
          next = JSON.stringify([at, null])
          break
        }
        for (const one of stored.keys) {
          keys.push({ ...accountBalanceOf(one, reader), key: one.key, scope: one.scope })
        }
        key = undefined
        if (stored.next !== null) {
          next = JSON.stringify([at, stored.next])
          break
        }
        room -= new Set(stored.keys.map((one) => one.key)).size
        if (room <= 0) next = beyond
      }
      return { keys, next } as never
    },
    async usage(book, options) {
      const {
        from,
        to,
        per,
        timeZone = 'UTC',
        by = [],
        key,
        scope,
        amounts,
      } = optionsGiven(options, usageOptions as KnownOptions<typeof options>)
      const question = {
        book: nameText(book, 'book'),
        from: momentText(from, 'from'),
        to: momentText(to, 'to'),
        unit: unitOf(per),
        zone: zoneOf(timeZone),
        by: byOf(by),
        key: key === undefined ? undefined : nameText(key, 'key'),
        scope: scope === undefined ? undefined : nameText(scope, 'scope'),
        most: mostRows + 1,
      }
      const answers = (await kernel.readEach((schema) => readUsage(schema, question))).map(
        (rows) => jsonAnswer(rows) as { rows: StoredUsage[]; complete: boolean } | undefined,
      )
      if (!answers.every((answer) => answer !== undefined)) {
        throw invalid('book', 'a rate keeps no usage: what flows in is booked with what is taken')
      }
      const rows = merged(answers.flatMap((answer) => answer.rows))
      if (rows.length > mostRows) {
        throw invalid('by', `more than ${mostRows} rows: ask for less time, or for one key`)
      }
      const reader = amountReader((amounts ?? 'number') as AmountKind)
      return {
        rows: rows.map((row) => ({
          period: momentOf(row.period),
          key: row.key ?? undefined,
          scope: row.scope ?? undefined,
          feature: row.feature ?? undefined,
          used: reader.read(row.used),
          refunded: reader.read(row.refunded),
          over: reader.read(row.over),
          movements: row.movements,
        })),
        complete: answers.every(({ complete }) => complete),
      } as never
    },
  }
}

async function readKeys<Tx>(
  { driver, schema }: Kernel<Tx>,
  at: number,
  { book, after, most }: { book: string; after: string | undefined; most: number },
  beyond: string | undefined,
): Promise<StoredKeys> {
  assertNotNested(driver)
  const ask = ({ alone }: Driver<Tx>): Promise<readonly Row[]> =>
    needingSchema(alone.query(listKeys(schema, book, after, most)))
  return jsonAnswer(await askOne(driver, at, ask, beyond)) as StoredKeys
}

/** Where a page begins: at which primary, after which key. */
function placeOf(
  after: string | undefined,
  primaries: number,
): { readonly at: number; readonly key: string | undefined } {
  if (after === undefined) return { at: 0, key: undefined }
  try {
    const [at, key] = JSON.parse(typeof after === 'string' ? after : '') as [number, string | null]
    const isPlace = Number.isInteger(at) && at >= 0 && at < primaries
    if (isPlace && (key === null || typeof key === 'string')) return { at, key: key ?? undefined }
  } catch {
    // No place.
  }
  throw invalid('after', 'after must be the next of an earlier page')
}

/** The same period, key, scope and feature on several primaries is one row. */
function merged(rows: readonly StoredUsage[]): StoredUsage[] {
  const sums = new Map<string, StoredUsage>()
  for (const row of rows) {
    const id = JSON.stringify([row.period, row.key, row.scope, row.feature])
    const same = sums.get(id)
    const sum = (part: 'used' | 'refunded' | 'over'): string =>
      String(BigInt(same?.[part] ?? 0) + BigInt(row[part]))
    const movements = (same?.movements ?? 0) + row.movements
    sums.set(id, {
      ...row,
      used: sum('used'),
      refunded: sum('refunded'),
      over: sum('over'),
      movements,
    })
  }
  return [...sums.values()]
}

function unitOf(per: string | undefined): string | undefined {
  if (per === undefined) return undefined
  assertPeriod(per)
  if (per !== 'minute' && per !== 'lifetime') return per
  throw invalid('per', 'per must be hour, day, week or month')
}

function zoneOf(timeZone: string): string {
  assertTimeZone(timeZone)
  return timeZone
}

const dimensions: ReadonlySet<unknown> = new Set(['key', 'scope', 'feature'])

function byOf(by: readonly UsageBy[]): readonly string[] {
  const list: readonly unknown[] = Array.isArray(by) ? by : [by]
  if (list === by && list.every((one) => dimensions.has(one))) return by
  throw invalid('by', 'by must be a list of key, scope and feature')
}
