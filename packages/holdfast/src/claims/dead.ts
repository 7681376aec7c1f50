import { type Driver, primariesOf, type Row } from '../core/driver.ts'
import { channels, publish } from '../core/events.ts'
import { isStorable } from '../core/storable.ts'
import { askEach, askOne } from '../tx/ask-each.ts'
import { assertNotNested } from '../tx/run.ts'
import type { ClaimsEngine, DeadLayout, DeadVerb, FoundDead, LeaseSettings } from './engine.ts'
import { invalid, positive } from './layout.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'

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

const listOptions: KnownOptions<NonNullable<Parameters<DeadRows<never>['list']>[0]>> = {
  limit: 'checked',
  after: 'checked',
}

const deadOptions: KnownOptions<DeadOptions> = {
  by: 'text',
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
  engine: ClaimsEngine,
  driver: Driver<Tx>,
  settings: LeaseSettings,
  { read, ...reading }: DeadReading<R>,
): DeadRows<R> {
  const { layout: whole, bucket } = settings
  const over = <T>({ alone }: Driver<Tx>, layout: DeadLayout, asking: Promise<T>): Promise<T> =>
    engine.overTable({ ...settings, layout }, alone, asking)
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
      changeOn(primary, layout, verb, keys, done, taken),
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
  /** Whose unique key is taken is found by halves: it is done for all of them or for none. */
  const changeOn = async (
    primary: Driver<Tx>,
    layout: DeadLayout,
    verb: DeadVerb,
    keys: readonly (readonly string[])[],
    done: Set<readonly string[]>,
    taken: Set<readonly string[]>,
  ): Promise<void> => {
    if (keys.length === 0) return
    const changing = engine.changeDead(primary, layout, verb, keys)
    const changed = await over(primary, layout, changing)
    if (changed !== 'taken') {
      for (const key of changed) done.add(key)
    } else if (keys.length === 1) {
      taken.add(keys[0] as readonly string[])
    } else {
      const middle = Math.ceil(keys.length / 2)
      await changeOn(primary, layout, verb, keys.slice(0, middle), done, taken)
      await changeOn(primary, layout, verb, keys.slice(middle), done, taken)
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
        let found: readonly FoundDead[]
        try {
          found = await askOne(
            driver,
            at,
            (primary) =>
              over(
                primary,
                layout,
                engine.findDead(primary, layout, { limit: wanted + 1, after: behind }),
              ),
            beyond,
          )
        } catch (error) {
          // What the primaries before it gave is told first; the next page says what is wrong.
          if (rows.length === 0) throw error
          return { rows, next: JSON.stringify([at, null]) }
        }
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
        over(primary, layout, engine.findDead(primary, layout, { key: wanted ?? [] })),
      )
      const [found] = answers.flat()
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
