import { randomBytes } from 'node:crypto'
import { sample } from '@holdfast/testkit'
import { expect, test } from 'vitest'
import { isHoldfastError } from '../../../src/core/errors.ts'
import { sqlStateOf } from '../../../src/core/sql-state.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast } from '../../../src/index.ts'
import { tableText } from '../../support/claims-fixture.ts'
import { ledgerFixture } from '../../support/ledger-fixture.ts'
import { callerTransaction } from '../../support/pg-fixture.ts'
import { callOf, ended, ownerOf, surface } from '../../support/surface.ts'

/**
 * Whoever calls without types makes mistakes: whatever is given in whichever place, the answer is an error of ours
 * that says what is wrong, one of the server's about tables of the caller's, or it works. The calls are those of the
 * surface, with one argument of each replaced.
 */
const fixture = ledgerFixture(tableText('job'))

const wrong: readonly (readonly [name: string, value: unknown])[] = sample([
  ['undefined', undefined],
  ['null', null],
  ['0', 0],
  ['-1', -1],
  ['NaN', NaN],
  ['Infinity', Infinity],
  ['2n', 2n],
  ["''", ''],
  ["'text'", 'text'],
  ['true', true],
  ['symbol', Symbol('some')],
  ['[]', []],
  ['[null]', [null]],
  ["['text']", ['text']],
  ['[{}]', [{}]],
  ['{}', {}],
  ['bare', Object.create(null)],
  ['function', async () => undefined],
  // S22: what a server would not take as text, number or date.
  ['NUL', 'a\0b'],
  ['half a character', 'a\ud800'],
  ['[NUL]', ['a\0b']],
  ['more than an index holds', randomBytes(1_500).toString('hex')],
  ['many digits', '9'.repeat(30)],
  ['2 ** 40', 2 ** 40],
  ['a date before Christ', new Date(-1e14)],
])

const paths = Object.keys(surface)

test.each(paths)('%s', async (path) => {
  expect(await bareErrors(path)).toEqual([])
})

test.each(['within', 'leaveAfter', undefined])('close: %s', async (option) => {
  const found: string[] = []
  for (const [name, value] of wrong) {
    const hf = createHoldfast(fromPg(fixture.pool))
    const given = option === undefined ? value : { [option]: value }
    const error = await errorOf(() => hf.close(given as never))
    if (isBare(error)) found.push(`${name}: ${String(error)}`)
  }
  expect(found).toEqual([])
})

/** What of the calls of a method ends in an error that nobody has made for the caller. */
async function bareErrors(path: string): Promise<string[]> {
  const hf = createHoldfast(fromPg(fixture.pool), { wait: 'nowait' })
  const tx = await callerTransaction(fixture)
  const { method, right } = callOf(path, tx)
  const found: string[] = []
  try {
    if (method === undefined) return []
    const on = (await ownerOf(path, hf, tx)) as unknown as Called
    for (const [what, args] of callsWith(right, await readBy(on, method, right))) {
      await tx.query('ROLLBACK')
      await tx.query('BEGIN')
      const error = await errorOf(async () => await ended(await on[method]?.(...args)))
      if (isBare(error)) found.push(`${what}: ${String(error)}`)
    }
  } finally {
    await hf.close({ within: 1, leaveAfter: 1_000 })
  }
  return found
}

type Called = Record<PropertyKey, (...args: unknown[]) => unknown>

/** Options that nobody has to give: whatever the method looks for in an object in this place. */
async function readBy(
  on: Called,
  method: PropertyKey,
  right: readonly unknown[],
): Promise<Map<number, string[]>> {
  const found = new Map<number, string[]>()
  for (const at of [...right.keys(), right.length]) {
    const given = right[at]
    if (given !== undefined && !isPlain(given)) continue
    const read = new Set<string>()
    const get = (target: object, name: string | symbol): unknown => {
      if (typeof name === 'string') read.add(name)
      return Reflect.get(target, name)
    }
    const noting = new Proxy({ ...(given as object | undefined) }, { get })
    await errorOf(async () => await ended(await on[method]?.(...right.toSpliced(at, 1, noting))))
    found.set(
      at,
      [...read].filter((name) => name !== 'then' && name !== 'toJSON'),
    )
  }
  return found
}

function* callsWith(
  right: readonly unknown[],
  options: ReadonlyMap<number, readonly string[]>,
): Generator<[what: string, args: unknown[]]> {
  for (let most = 0; most < right.length; most += 1) yield [`${most} given`, right.slice(0, most)]
  for (const [name, value] of wrong) {
    for (let at = 0; at <= right.length; at += 1)
      yield [`${name} at ${at}`, right.toSpliced(at, 1, value)]
    for (const [at, read] of options) {
      const given = right[at] as object | undefined
      for (const option of new Set([...Object.keys(given ?? {}), ...read]))
        yield [`${option}: ${name} at ${at}`, right.toSpliced(at, 1, { ...given, [option]: value })]
    }
  }
}

function isPlain(given: unknown): boolean {
  return given instanceof Object && Object.getPrototypeOf(given) === Object.prototype
}

async function errorOf(call: () => unknown): Promise<unknown> {
  try {
    await call()
    return undefined
  } catch (error) {
    return error
  }
}

function isBare(error: unknown): boolean {
  if (error === undefined || isHoldfastError(error)) return false
  const state = sqlStateOf(error)
  return state === undefined || isOurs(state, error)
}

/**
 * What the server says about a text or number that it cannot take as such, whatever the column; and about JSON, which
 * we have written. That a column of the caller's has another type is for the server to say.
 */
function isOurs(state: string, error: unknown): boolean {
  if (['22021', '22P05', '22003', '22008', '22009', '54000'].includes(state)) return true
  return state === '22P02' && /type json/.test(String(error))
}
