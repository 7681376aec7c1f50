import type { PoolClient } from 'pg'
import { isHoldfastError } from '../../packages/holdfast/src/core/errors.ts'
import { sqlStateOf } from '../../packages/holdfast/src/core/sql-state.ts'
import { settledWithin } from '../../packages/holdfast/src/core/within.ts'
import type { Holdfast } from '../../packages/holdfast/src/index.ts'
import { callOf, ended, ownerOf, surface } from '../../packages/holdfast/test/support/surface.ts'
import type { Random } from '../harness/random.ts'
import { hostileText, type Sort } from './hostile-words.ts'

/**
 * Every method that a Holdfast hands out, called as the tests call it, with some of its texts replaced. The list is that
 * of the tests, which fails when a method is missing.
 */
const called = Object.keys(surface).filter((path) => callOf(path, {} as PoolClient).method)

/** They read the whole ledger, or start servers' work: seldom. */
const costly = /^(ledger\.(audit|maintain|open|usage|follow)|locks\.selfTest|observe\.)/

/** They name tables, columns and keys of the user's, of which the server says itself that there are none. */
const onTables = /^(rows\.|claims|work\(\)|observe\.claims)/
const noSuchName = /^(42P01|42703|42704|3F000|42602|42809|0A000)|^22P02(?!.*type json)/

/** How long a call may take at most, and one that reads all there is: a new follower gets every movement since the first. */
const hangMs = 15_000
const costlyHangMs = 120_000

export interface Made {
  readonly path: string
  readonly sort: Sort | 'none'
  readonly wrong: string | undefined
}

/** One generated call. */
export async function hostileCall(
  random: Random,
  hf: Holdfast<PoolClient>,
  tx: PoolClient,
): Promise<Made> {
  const [first = '', second = ''] = random.sample(called, 2)
  const path = costly.test(first) && random.integer(0, 19) > 0 ? second : first
  const { method, right } = callOf(path, tx)
  let sort: Made['sort'] = 'none'
  const text = (): string => {
    const [of, word] = hostileText(random)
    sort = of
    return word
  }
  const needsTx = right.includes(tx) || path.includes('acquire()')
  if (needsTx) await tx.query('BEGIN')
  const args = withTexts(right, random, text)
  const call = (async () => {
    const on = (await ownerOf(path, hf, tx)) as Record<PropertyKey, (...args: unknown[]) => unknown>
    await ended(await on[method as PropertyKey]?.(...args))
  })()
  const limitMs = costly.test(path) ? costlyHangMs : hangMs
  const error = (await settledWithin(call, limitMs))
    ? await call.then(
        () => undefined,
        (reason: unknown) => reason,
      )
    : hung
  if (needsTx) await tx.query('ROLLBACK')
  return { path, sort, wrong: judge(path, error) }
}

const hung = Symbol('hung')

function judge(path: string, error: unknown): string | undefined {
  if (error === undefined || isHoldfastError(error)) return undefined
  if (error === hung) return `${path} was not over in time`
  const said = `${sqlStateOf(error) ?? 'no code'}: ${String(error as Error).slice(0, 200)}`
  return onTables.test(path) && noSuchName.test(said) ? undefined : `${path} threw ${said}`
}

/** Some texts replaced, and sometimes one more option. What has a prototype of its own is the caller's handle. */
function withTexts(args: readonly unknown[], random: Random, text: () => string): unknown[] {
  const replaced = (value: unknown): unknown => {
    if (typeof value === 'string') return random.integer(0, 1) === 0 ? text() : value
    if (Array.isArray(value)) return value.map(replaced)
    // Keys of locks and lines of the ledger are made by us, and nobody has to read them.
    if (!isPlain(value) || 'lock' in value || 'line' in value) return value
    const fields = Object.entries(value).map(([name, field]) => [name, replaced(field)] as const)
    const more = moreOptions[random.integer(0, 4 * moreOptions.length)]
    return Object.fromEntries(more === undefined ? fields : [...fields, [more, text()]])
  }
  const some = args.map(replaced)
  const last = some.at(-1)
  return isPlain(last) || some.length === 0 || random.integer(0, 3) > 0
    ? some
    : [...some, replaced({ scope: 'scope' })]
}

const moreOptions = [
  'scope',
  'key',
  'note',
  'feature',
  'after',
  'schema',
  'holder',
  'error',
  'reason',
  'location',
  'timeZone',
  'wait',
  'payload',
  'uniqueKey',
  'plan',
]

function isPlain(value: unknown): value is object {
  return value instanceof Object && Object.getPrototypeOf(value) === Object.prototype
}
