/** Whatever a flow returns: what can be reached in it is compared, or said to be unseen. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lookInto } from '../../../src/run/answer/answer-tree.ts'

const seed = Number(process.env['HOLDFAST_SEED'] ?? Math.floor(Math.random() * 2 ** 31))

/** Every value of it is made from a number; two that are made from other numbers are others. */
type Make = (next: () => number) => unknown

class Basket extends Map<unknown, unknown> {
  total: unknown
}
class Bag extends Set<unknown> {
  #all: unknown
  constructor(all: unknown) {
    super()
    this.#all = all
  }
  get all(): unknown {
    return this.#all
  }
}
class Plain {
  readonly value: unknown
  constructor(value: unknown) {
    this.value = value
  }
}

const leaves: readonly Make[] = [
  (next) => next(),
  (next) => `text ${next()}`,
  (next) => BigInt(next()),
  (next) => new Date(next()),
  (next) => new Date(next() * 1e6),
  (next) => Symbol(`s${next()}`),
  (next) => new Uint8Array([next() % 251]),
  (next) => new URL(`http://h/${next()}`),
  (next) => new RegExp(`r${next()}`),
]

const fields = (...all: readonly (readonly [string | symbol, unknown])[]): object => {
  const made = {}
  for (const [name, value] of all)
    Object.defineProperty(made, name, { value, enumerable: true, configurable: true })
  return made
}

const around: readonly ((all: readonly Make[]) => Make)[] = [
  (all) => (next) => all.map((make) => make(next)),
  (all) => (next) => Object.assign(['x'], { total: all.map((make) => make(next)) }),
  (all) => (next) => Object.assign([1, 2], { count: next(), rest: all.map((make) => make(next)) }),
  (all) => (next) => {
    const list = all.map((make) => make(next))
    list.length += 2
    list.push(next())
    return list
  },
  (all) => (next) => fields(...all.map((make, at) => [`f${at}`, make(next)] as const)),
  (all) => (next) => fields(['__proto__', all.map((make) => make(next))], ['a', next()]),
  (all) => (next) =>
    fields([Symbol('twice'), next()], [Symbol('twice'), all.map((make) => make(next))]),
  (all) => (next) => ({ command: `C${next()}`, rows: all.map((make) => make(next)), n: next() }),
  (all) => (next) => ({ command: 'X', rows: [], rowCount: 0, fields: [next()], all: all.length }),
  (all) => (next) => new Map(all.map((make, at) => [at, make(next)])),
  (all) => (next) => new Map(all.map((make) => [make(next), 1])),
  (all) => (next) =>
    Object.assign(new Basket([[1, next()]]), { total: all.map((make) => make(next)) }),
  (all) => (next) => Object.assign(new Set([next()]), { more: all.map((make) => make(next)) }),
  (all) => (next) => new Bag(all.map((make) => make(next))),
  (all) => (next) => Object.assign(new Date(0), { at: all.map((make) => make(next)) }),
  (all) => (next) => new Plain(all.map((make) => make(next))),
  (all) => (next) => new AggregateError(all.map((make) => make(next))),
  (all) => (next) =>
    Object.assign(new Error('e', { cause: next() }), { detail: all.map((make) => make(next)) }),
  (all) => (next) => Object.assign(new Number(1), { unit: all.map((make) => make(next)) }),
  (all) => (next) => Object.assign(/x/, { groups: all.map((make) => make(next)) }),
]

const { graph } = fc.letrec<{ graph: Make }>((tie) => ({
  graph: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom(...leaves),
    fc
      .tuple(fc.constantFrom(...around), fc.array(tie('graph'), { minLength: 1, maxLength: 4 }))
      .map(([shape, all]) => shape(all)),
  ),
}))

/** The value, with one of its numbers changed; how many numbers it has. */
function built(make: Make, changed?: number): readonly [value: unknown, numbers: number] {
  let place = 0
  const value = make(() => {
    place += 1
    return place - 1 === changed ? 1_000 + place : place
  })
  return [value, place]
}

describe('any graph of values', () => {
  test('is the same tree twice, and another one if anything in it is another', async () => {
    await fc.assert(
      fc.asyncProperty(graph, fc.nat(), async (make, any) => {
        const [value, numbers] = built(make)
        const seen = await lookInto(value)
        expect(await lookInto(built(make)[0])).toEqual(seen)
        if (numbers === 0) return
        const other = await lookInto(built(make, any % numbers)[0])
        const differs = JSON.stringify(other.tree) !== JSON.stringify(seen.tree)
        expect(differs || seen.unseen.length > 0).toBe(true)
      }),
      { seed, numRuns: 2_000 },
    )
  })

  test('a hole is no value, and is seen', async () => {
    const holes: unknown[] = [undefined]
    holes.length = 2
    expect((await lookInto(holes)).tree).toEqual([{ '‹undefined›': null }, { '‹hole›': null }])
  })

  test('what a result of node-postgres says about types is no part of it', async () => {
    const result = { command: 'SELECT', rows: [{ n: 1 }], rowCount: 1, _parsers: [() => 1] }
    expect(await lookInto(result)).toEqual({ tree: { rows: [{ n: 1 }], rowCount: 1 }, unseen: [] })
    const more = await lookInto({ ...result, balance: 2 })
    expect(more.tree).toEqual({ rows: [{ n: 1 }], rowCount: 1, balance: 2 })
  })

  test.each([
    ['numbers', (at: number) => at],
    ['texts', (at: number) => `t${at}`],
  ])('many %s take no time, and are compared or said to be unseen', async (_, item) => {
    const long = Array.from({ length: 300_000 }, (_one, at) => item(at))
    const seen = await lookInto(long)
    const other = await lookInto(long.with(299_999, item(-1)))
    expect(JSON.stringify(seen.tree).length).toBeLessThan(2_000_000)
    expect(JSON.stringify(other.tree) !== JSON.stringify(seen.tree) || seen.unseen.length > 0).toBe(
      true,
    )
  })
})
