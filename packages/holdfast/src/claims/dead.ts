import { type Driver, primariesOf, type Row, type Statement } from '../core/driver.ts'
import { channels, publish } from '../core/events.ts'
import { sqlStateOf } from '../core/sql-state.ts'
import { isStorable } from '../core/storable.ts'
import {
  changeDead,
  deadFrom,
  type DeadLayout,
  type DeadVerb,
  findDead,
  type FoundDead,
  listDead,
} from '../engines/postgres/claims/dead.ts'
import { askEach, askOne } from '../tx/ask-each.ts'
import { withOperators } from '../engines/postgres/sql/own-operators.ts'
import { assertNotNested } from '../tx/run.ts'
import { invalid, type LeaseSettings, positive } from './layout.ts'
import { aloneOn } from './sending.ts'
import { overTable } from './table-failure.ts'
import { optionsGiven } from '../core/known-options.ts'
import { deadOptions, listOptions } from './known-options.ts'

/** A row that had its last attempt. */
export interface DeadRow<R> {
  /** The values of its key columns, as text: what `get`, `retry` and `delete` take. */
  readonly key: readonly string[]
  readonly row: R
  /** How often it was tried. */
  readonly attempts: number | undefined
  /** Why it failed last; `undefined` without a column for it. */
  readonly error: string | undefined
}

/** Some of the dead rows. */
export interface DeadPage<R> {
  readonly rows: readonly DeadRow<R>[]
  /** Where the next page begins: the next `after`. `undefined` if this was the last one. */
  readonly next: string | undefined
}

/** What became of dead rows that somebody did something about. */
export interface DeadOutcome {
  /** Keys for which it was done. */
  readonly done: readonly (readonly string[])[]
  /** Keys that are not dead any more, or were never there. */
  readonly missing: readonly (readonly string[])[]
  /** Only of `retry`: keys whose unique key another row has by now. They stay dead. */
  readonly taken: readonly (readonly string[])[]
}

/** Whoever intervenes, for the event. */
export interface DeadOptions {
  readonly by?: string
}

/** One key or several. A key of one column may be given as text. */
export type DeadKeys = string | readonly string[] | readonly (readonly string[])[]

/** Rows that had their last attempt: to be looked at, tried again or deleted. */
export interface DeadRows<R> {
  /**
   * Dead rows, oldest first, a page at a time.
   *
   * @example
   * let page = await emails.dead.list()
   * while (page.next !== undefined) page = await emails.dead.list({ after: page.next })
   * @throws OPTION_INVALID, SCHEMA_MISSING, SHARD_PRIMARY_FAILED
   */
  list(options?: { readonly limit?: number; readonly after?: string }): Promise<DeadPage<R>>
  /** One dead row; `undefined` if there is none with this key. @throws OPTION_INVALID, SCHEMA_MISSING */
  get(key: string | readonly string[]): Promise<DeadRow<R> | undefined>
  /**
   * Lets them be claimed again, at once and with all their attempts before them. Publishes
   * `holdfast:claims.intervened`.
   *
   * @example const { done } = await emails.dead.retry(page.rows.map(({ key }) => key))
   * @throws OPTION_INVALID, SCHEMA_MISSING, TX_NESTED, COMMIT_UNKNOWN, SHARD_PRIMARY_FAILED
   */
  retry(keys: DeadKeys, options?: DeadOptions): Promise<DeadOutcome>
  /** Deletes them for good. Publishes `holdfast:claims.intervened`. @throws as `retry` */
  delete(keys: DeadKeys, options?: DeadOptions): Promise<DeadOutcome>
}

const mostRows = 1_000

/** How dead rows are found and read. */
export interface DeadReading<R> {
  readonly key: readonly string[]
  readonly listedBy: readonly string[]
  readonly asJson: boolean
  readonly read: (row: Row) => R
}

/** Over one table, on all primaries that have a part of it. */
export function createDead<Tx, R>(
  driver: Driver<Tx>,
  settings: LeaseSettings,
  { read, ...reading }: DeadReading<R>,
): DeadRows<R> {
  const { layout: whole, bucket } = settings
  const ask: Ask<Tx> = (primary, layout, statementOf) =>
    overTable({ ...settings, layout }, primary.alone, askOn(primary, layout, statementOf))
  const primaries = primariesOf(driver).length
  const schema = driver.shards?.schema
  const shard = schema === undefined || bucket === undefined ? undefined : { schema, bucket }
  const layoutOf = (): DeadLayout => {
    const { dead } = whole
    if (dead === undefined) {
      throw invalid('columns.attempts', 'is needed: without it no row is ever dead')
    }
    return { ...whole, ...reading, dead, ...(shard === undefined ? {} : { shard }) }
  }
  const told = ({ key, attempts, error, row }: FoundDead): DeadRow<R> => ({
    key,
    attempts,
    error,
    row: read(row),
  })
  const keysOf = (keys: DeadKeys): readonly (readonly string[])[] => {
    if (typeof keys !== 'string' && !Array.isArray(keys)) throw invalid('keys', 'must be a list')
    const list = typeof keys === 'string' ? [[keys]] : [...(keys as readonly (string | string[])[])]
    const nested = list.some(Array.isArray)
      ? list.map((each) => (Array.isArray(each) ? each : [each]))
      : reading.key.length === 1
        ? (list as string[]).map((each) => [each])
        : [list as string[]]
    const isKey = (key: readonly unknown[]): boolean =>
      key.length === reading.key.length && key.every(isKeyValue)
    if (!nested.every(isKey)) {
      throw invalid(
        'key',
        `needs a value for each of ${reading.key.join(', ')}, as dead.list() gives it`,
      )
    }
    if (nested.length > mostRows) throw invalid('keys', `are more than ${mostRows}`)
    // Each once: what is asked for twice would be done, and then not be there.
    const texts = nested.map((key) => key.map(String))
    return [...new Map(texts.map((key) => [JSON.stringify(key), key])).values()]
  }
  const change = async (
    verb: DeadVerb,
    given: DeadKeys,
    options: DeadOptions | undefined,
  ): Promise<DeadOutcome> => {
    const { by } = optionsGiven(options, deadOptions)
    const layout = layoutOf()
    const keys = keysOf(given)
    assertNotNested(driver)
    const [done, taken] = [new Set<readonly string[]>(), new Set<readonly string[]>()]
    const { failure } = await askEach(driver, (primary) =>
      changeOn(ask, primary, layout, verb, keys, done, taken),
    )
    const { table } = layout.table
    publish(channels.claimsIntervened, { table, verb, done: done.size, asked: keys.length, by })
    const missing = keys.filter((key) => !done.has(key) && !taken.has(key))
    // A row that nobody else has may be there.
    if (failure !== undefined && missing.length > 0) throw failure
    return {
      done: keys.filter((key) => done.has(key)),
      taken: keys.filter((key) => taken.has(key)),
      missing,
    }
  }
  return {
    async list(options) {
      const { limit = 50, after } = optionsGiven(options, listOptions)
      positive(limit, 'limit')
      if (limit > mostRows) throw invalid('limit', `is more than ${mostRows}`)
      const layout = layoutOf()
      assertNotNested(driver)
      let [at, place] = placeOf(after, primaries)
      const rows: DeadRow<R>[] = []
      for (; at < primaries; at += 1, place = undefined) {
        const wanted = limit - rows.length
        const behind = place
        const beyond = at + 1 < primaries ? JSON.stringify([at + 1, null]) : undefined
        let answer: readonly Row[]
        try {
          answer = await askOne(
            driver,
            at,
            (primary) => ask(primary, layout, (fitting) => listDead(fitting, wanted + 1, behind)),
            beyond,
          )
        } catch (error) {
          // What the primaries before it gave is told first; the next page says what is wrong.
          if (rows.length === 0) throw error
          return { rows, next: JSON.stringify([at, null]) }
        }
        const found = deadFrom(layout, answer)
        rows.push(...found.slice(0, wanted).map(told))
        const last = found[wanted - 1]
        if (found.length > wanted) {
          return { rows, next: JSON.stringify([at, last?.place ?? place ?? null]) }
        }
      }
      return { rows, next: undefined }
    },
    async get(key) {
      const layout = layoutOf()
      const [wanted] = keysOf(typeof key === 'string' ? key : [key])
      assertNotNested(driver)
      const { answers, failure } = await askEach(driver, (primary) =>
        ask(primary, layout, (fitting) => findDead(fitting, wanted ?? [])),
      )
      const [found] = answers.flatMap((rows) => deadFrom(layout, rows))
      if (found !== undefined) return told(found)
      if (failure !== undefined) throw failure
      return undefined
    },
    retry: (keys, options) => change('retry', keys, options),
    delete: (keys, options) => change('delete', keys, options),
  }
}

/** Text, and what a caller without types may have in its place. */
function isKeyValue(value: unknown): boolean {
  return isStorable(value) || ['number', 'bigint'].includes(typeof value)
}

/** Whose unique key is taken is found by halves: a statement fails as a whole. */
async function changeOn<Tx>(
  ask: Ask<Tx>,
  driver: Driver<Tx>,
  layout: DeadLayout,
  verb: DeadVerb,
  keys: readonly (readonly string[])[],
  done: Set<readonly string[]>,
  taken: Set<readonly string[]>,
): Promise<void> {
  if (keys.length === 0) return
  try {
    const rows = await ask(driver, layout, (fitting) => changeDead(fitting, verb, keys))
    for (const row of rows) done.add(keys[Number(row['at']) - 1] as readonly string[])
  } catch (error) {
    if (sqlStateOf(error) !== '23505') throw error
    if (keys.length === 1) {
      taken.add(keys[0] as readonly string[])
      return
    }
    const middle = Math.ceil(keys.length / 2)
    await changeOn(ask, driver, layout, verb, keys.slice(0, middle), done, taken)
    await changeOn(ask, driver, layout, verb, keys.slice(middle), done, taken)
  }
}

/** The answer of one primary to a statement about dead rows. */
type Ask<Tx> = (
  primary: Driver<Tx>,
  layout: DeadLayout,
  statementOf: (fitting: DeadLayout) => Statement,
) => Promise<readonly Row[]>

async function askOn<Tx>(
  driver: Driver<Tx>,
  layout: DeadLayout,
  statementOf: (fitting: DeadLayout) => Statement,
): Promise<readonly Row[]> {
  const on = aloneOn(driver)
  try {
    return await on.query(statementOf(await withOperators(driver, on, layout)))
  } catch (error) {
    if (sqlStateOf(error)?.startsWith('22') === true) {
      throw invalid('key', 'or after has a value that its column cannot have')
    }
    throw error
  }
}

/** Which primary, and where on it. */
function placeOf(after: string | undefined, primaries: number): [number, string | undefined] {
  if (after === undefined) return [0, undefined]
  try {
    const [at, place] = JSON.parse(after) as [unknown, unknown]
    if (typeof at === 'number' && at >= 0 && at < primaries) {
      return [at, typeof place === 'string' ? place : undefined]
    }
  } catch {
    // Told below.
  }
  throw invalid('after', 'is not the next of a page')
}
