import { type ShortWay, withShortWay } from '../core/activity.ts'
import { durationMs, type Duration } from '../core/options/duration.ts'
import type { Driver } from '../core/driver.ts'
import { assertDriver } from '../core/client-kind.ts'
import { holdfastError } from '../core/errors.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import {
  forgetLimits,
  type LimitKey,
  lookAtLimit,
  resetLimit,
  takingStatement,
} from '../engines/postgres/rate-limit/rate-limit.ts'
import { callFunction, queryJoined, schemaMissing } from '../engines/postgres/sql/call-function.ts'
import { calledWith } from '../ledger/book.ts'
import { type Key, nameText } from '../ledger/operation.ts'
import { askAgain, type ResolveOptions, resolveMs, resolveOptions } from '../tx/ask-again.ts'
import { askAll } from '../tx/ask-each.ts'
import { assertNotNested } from '../tx/run.ts'
import { Batches, isLocked } from './batches.ts'
import { LimitKeys } from './limit-key.ts'
import { peeked } from './peek.ts'
import { amountOf, assertAmount, countingOf, type LimitSpan, type Terms } from './terms.ts'
import { granted, type KeyAnswer, answersIn, type LimitVerdict, refused } from './verdict.ts'

export type { LimitPer, LimitRate, LimitSpan } from './terms.ts'
export type { LimitGranted, LimitRefused, LimitVerdict } from './verdict.ts'

/**
 * Declares a rate limit: a number for each key, to slow a client down. It keeps no history and takes no operation id: a
 * call whose answer was lost is asked again, and may count twice. What is paid for is counted by a quota.
 */
export type RateLimitOptions = LimitSpan & {
  /** Together with the window, what is counted as one: in every process, and whatever its limit is. */
  readonly name: string
  /** One limit for all, or a function of the key. It may change from call to call. */
  readonly limit: number | ((key: string) => number | Promise<number>)
  /**
   * Longest wait of a call, counted from the call, for a key that an open transaction has used. @defaultValue '10 s'
   */
  readonly wait?: Duration
}

/** Settings of all rate limits. */
export interface RateLimitSettings extends ResolveOptions {
  /** Where its table is. @defaultValue 'holdfast' */
  readonly schema?: string
}

/** Options of a call. */
export interface LimitCallOptions {
  /** What stays together on one server; part of what the key is. @defaultValue the key */
  readonly scope?: string
}

/** Options of `peek`. */
export interface LimitPeekOptions extends LimitCallOptions {
  /** What `retryAt` is about. @defaultValue 1 */
  readonly cost?: number
}

/** How many calls a client may make: exact under any concurrency, and no more than that. */
export interface RateLimit<Tx> {
  readonly name: string
  /**
   * Uses up `cost` if it fits. A refusal uses nothing. With your transaction as the first argument,
   * what it used comes back if you roll back; until you end it, everybody else waits for this key.
   *
   * @example
   * const verdict = await calls.consume(request.ip)
   * if (!verdict.ok) return new Response(null, { status: 429 })
   * @throws OPTION_INVALID, LEDGER_NAME_INVALID, RATE_LIMIT_TIMEOUT, RATE_LIMIT_OVERLOADED, COMMIT_UNKNOWN, SCHEMA_MISSING,
   * TX_NESTED, RATE_LIMIT_OUTSIDE_TRANSACTION
   */
  consume(key: Key, cost?: number, options?: LimitCallOptions): Promise<LimitVerdict>
  consume(tx: Tx, key: Key, cost?: number, options?: LimitCallOptions): Promise<LimitVerdict>
  /**
   * Whether `cost` would fit, and what is available: before it, where `consume` says what is left after it. Changes
   * nothing, waits for nobody, and promises nothing: another caller may be faster.
   *
   * @throws OPTION_INVALID, LEDGER_NAME_INVALID, SCHEMA_MISSING, TX_NESTED, RATE_LIMIT_OUTSIDE_TRANSACTION
   */
  peek(key: Key, options?: LimitPeekOptions): Promise<LimitVerdict>
  peek(tx: Tx, key: Key, options?: LimitPeekOptions): Promise<LimitVerdict>
  /**
   * Forgets what a key has used. Waits for an open transaction that has used it, as `consume` does.
   *
   * @throws LEDGER_NAME_INVALID, RATE_LIMIT_TIMEOUT, COMMIT_UNKNOWN, SCHEMA_MISSING, TX_NESTED,
   * RATE_LIMIT_OUTSIDE_TRANSACTION
   */
  reset(key: Key, options?: LimitCallOptions): Promise<void>
  reset(tx: Tx, key: Key, options?: LimitCallOptions): Promise<void>
  /**
   * Deletes the rows of keys that are not limited any more, of all rate limits, and says how many. New keys do the same
   * along the way, so this is only for when there are no new keys: after an attack. Reads `batch` rows in a statement.
   *
   * @throws OPTION_INVALID, SCHEMA_MISSING, TX_NESTED
   */
  forget(options?: { readonly batch?: number }): Promise<number>
}

const rateLimitOptions: KnownOptions<RateLimitOptions> = {
  name: 'checked',
  limit: 'checked',
  per: 'checked',
  timeZone: 'checked',
  rate: 'checked',
  burst: 'checked',
  rolling: 'checked',
  wait: 'checked',
}
const settingsOptions: KnownOptions<RateLimitSettings> = { ...resolveOptions, schema: 'text' }
const callOptions: KnownOptions<LimitCallOptions> = { scope: 'checked' }
const peekOptions: KnownOptions<LimitPeekOptions> = { ...callOptions, cost: 'checked' }
const forgetOptions: KnownOptions<{ readonly batch?: number }> = { batch: 'checked' }

const outside = 'RATE_LIMIT_OUTSIDE_TRANSACTION'
/** Looked at in one statement of `forget`. */
const mostRows = 10_000
/** So often a key is asked for in a transaction whose first use somebody else makes at the same moment. */
const mostTries = 10

/** A rate limit over a driver of PostgreSQL. */
export function createRateLimit<Tx>(
  driver: Driver<Tx>,
  given: RateLimitOptions,
  settings: RateLimitSettings = {},
): RateLimit<Tx> {
  assertDriver(driver, 'createRateLimit')
  const options = optionsGiven(given, rateLimitOptions)
  const known = optionsGiven(settings, settingsOptions)
  const { schema = 'holdfast' } = known
  const name = nameText(options.name, 'book')
  const { window, terms } = countingOf(options)
  const isRate = window === undefined
  const keys = new LimitKeys(name, isRate ? 'rate' : `${window.unit} ${window.zone}`)
  const batchSettings = {
    schema,
    name,
    isRate,
    forMs: resolveMs(known),
    waitMs: durationMs(options.wait ?? '10 s', 'wait'),
  }
  const joined = {
    sure: takingStatement(schema, window, 'joined'),
    unsure: takingStatement(schema, window, 'marked'),
  }
  const submit = submitting(driver, takingStatement(schema, window, 'alone'), batchSettings)

  const { limit } = options
  if (typeof limit !== 'function') assertLimit(limit)
  const constant = typeof limit === 'function' ? undefined : terms(limit)
  function assertLimit(value: unknown): void {
    assertAmount(value, 'limit', isRate ? 1 : 0)
  }
  const checked = (value: number): Terms => {
    assertLimit(value)
    return terms(value)
  }
  /** At once, unless somebody has to be asked. */
  const termsOf = (key: string): Terms | Promise<Terms> => {
    if (constant !== undefined || typeof limit !== 'function') return constant as Terms
    const asked = limit(key)
    return typeof asked === 'number' ? checked(asked) : Promise.resolve(asked).then(checked)
  }
  const idOf = (key: Key, scope: string | undefined): readonly [LimitKey, string] => {
    const text = nameText(key, 'key')
    return [keys.of(text, scope === undefined ? text : nameText(scope, 'scope')), text]
  }

  const takeJoined = async (
    tx: Tx,
    id: LimitKey,
    its: Terms,
    cost: number,
  ): Promise<LimitVerdict> => {
    const taking = [{ id, amount: amountOf(its, cost), most: its.most, unit: its.unit }]
    for (let tries = 0; tries < mostTries; tries += 1) {
      const rows = await queryJoined(driver, tx, outside, (marked) =>
        (marked ? joined.unsure : joined.sure)(taking),
      )
      const [answer] = answersIn(rows[0]?.['answer'], 1)
      if (answer !== undefined) return verdictOf(its, isRate, answer, cost)
    }
    throw holdfastError('RATE_LIMIT_TIMEOUT', { details: { subject: name } })
  }

  const consume = async (...args: readonly unknown[]): Promise<LimitVerdict> => {
    const [tx, key, cost = 1, rest] = calledWith<Tx>(args)
    assertAmount(cost, 'cost')
    const { scope } =
      rest === undefined ? none : optionsGiven(rest as LimitCallOptions, callOptions)
    const [id, text] = idOf(key, scope)
    const asked = termsOf(text)
    const its = asked instanceof Promise ? await asked : asked
    if (tx !== undefined) {
      try {
        return await takeJoined(tx, id, its, cost)
      } catch (error) {
        throw schemaMissing(error) ?? error
      }
    }
    // A second connection could wait for what this transaction holds, for ever.
    assertNotNested(driver)
    return await submit(id, its, cost)
  }

  /** What is asked for most of the time: nothing but a key and a number. */
  const shortly: ShortWay = (args, crowd) => {
    const [key, cost = 1] = args
    if (constant === undefined || args.length > 2 || typeof key !== 'string') return undefined
    if (driver.shards !== undefined || !Number.isSafeInteger(cost) || (cost as number) < 1)
      return undefined
    try {
      const [id] = idOf(key, undefined)
      assertNotNested(driver)
      return submit(id, constant, cost as number, crowd)
    } catch {
      // Refused before anything was done. The longer way says why, where it was asked for.
      return undefined
    }
  }

  return {
    name,
    consume: withShortWay(consume, shortly),
    async peek(...args: readonly unknown[]) {
      const [tx, key, rest] = calledWith<Tx>(args)
      const { scope, cost = 1 } = optionsGiven(rest as LimitPeekOptions | undefined, peekOptions)
      assertAmount(cost, 'cost')
      const [id, text] = idOf(key, scope)
      const its = await termsOf(text)
      const call = lookAtLimit(schema, id, window)
      const look = (): Promise<string | null> => callFunction(driver, tx, call, outside)
      const answer = await (tx === undefined
        ? askAgain(look, { forMs: batchSettings.forMs, unknown: 'CONNECTION_LOST' })
        : look())
      return peeked(JSON.parse(String(answer)) as number[], isRate, its, cost)
    },
    async reset(...args: readonly unknown[]) {
      const [tx, key, rest] = calledWith<Tx>(args)
      const { scope } = optionsGiven(rest as LimitCallOptions | undefined, callOptions)
      const { forMs, waitMs } = batchSettings
      const call = resetLimit(schema, idOf(key, scope)[0], tx === undefined ? waitMs : undefined)
      const reset = (): Promise<string | null> => callFunction(driver, tx, call, outside)
      try {
        await (tx === undefined ? askAgain(reset, { forMs }) : reset())
      } catch (error) {
        if (tx !== undefined || !isLocked(error)) throw error
        throw holdfastError('RATE_LIMIT_TIMEOUT', { cause: error, details: { subject: name } })
      }
    },
    async forget(asked) {
      const { batch = 1_000 } = optionsGiven(asked, forgetOptions)
      assertAmount(batch, 'batch', 1, mostRows)
      assertNotNested(driver)
      const deleted = await askAll(driver, (primary) => forgetAll(primary, schema, batch))
      return deleted.reduce((sum, each) => sum + each, 0)
    },
  }
}

const none: LimitCallOptions = {}

function verdictOf(terms: Terms, isRate: boolean, answer: KeyAnswer, cost: number): LimitVerdict {
  return answer.ok ? granted(terms, isRate, answer) : refused(terms, isRate, answer, cost)
}

/** One for each primary: what goes into one statement has to be on one server. */
function submitting<Tx>(
  { shards, alone }: Driver<Tx>,
  statement: ReturnType<typeof takingStatement>,
  settings: ConstructorParameters<typeof Batches>[2],
): Batches['submit'] {
  const single = new Batches(alone, statement, settings)
  if (shards === undefined) return (...call) => single.submit(...call)
  const batches = new Map<string, Batches>()
  return (id, terms, cost) =>
    shards.routed([id.bucket], (primary, executor) => {
      const known = batches.get(primary) ?? new Batches(executor, statement, settings)
      batches.set(primary, known)
      return known.submit(id, terms, cost)
    })
}

const first: readonly [number, string] = [-1, '00000000-0000-0000-0000-000000000000']

async function forgetAll<Tx>(driver: Driver<Tx>, schema: string, batch: number): Promise<number> {
  let after = first
  let sum = 0
  for (;;) {
    const call = forgetLimits(schema, after, batch)
    const answer = await callFunction(driver, undefined, call, outside)
    const [deleted, bucket, key] = JSON.parse(String(answer)) as [
      number,
      number | null,
      string | null,
    ]
    sum += deleted
    if (bucket === null || key === null) return sum
    after = [bucket, key]
  }
}
