/**
 * A model of guards that wait in the queues of their processes and in PostgreSQL, and whose bodies call guards of
 * other processes (another driver, or another service). If everybody stands still in it, they would also stand
 * still without the queues. The control gives guards a place at each of their keys.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lockKey, shared } from '../../../src/entries/locks.ts'
import { queuedAt } from '../../../src/locks/queued-guard.ts'
import { KeyQueues } from '../../../src/core/locks/key-queues.ts'
import type { Driver } from '../../../src/core/driver.ts'

interface Guard {
  readonly process: number
  /** Keys are numbers; PostgreSQL takes them in their order. */
  readonly keys: readonly number[]
  /** What its body calls, and waits for. */
  readonly inner?: Guard
}

/** At which of its keys a guard has a place before it goes to PostgreSQL. */
type Rule = (keys: readonly number[]) => readonly number[]

/** One call on its way: it waits for places, then for locks, then for what its body calls. */
class Call {
  readonly guard: Guard
  readonly places: readonly number[]
  readonly outer: Call | undefined
  placed = 0
  locked = 0
  inner: Call | undefined
  isOver = false

  constructor(guard: Guard, rule: Rule, outer?: Call) {
    this.guard = guard
    this.places = rule(guard.keys)
    this.outer = outer
  }
}

class World {
  readonly calls: Call[]
  readonly rule: Rule
  readonly #placed = new Map<string, Call>()
  readonly #locked = new Map<number, Call>()
  /** In the order of arrival, in the queue of a process and in that of PostgreSQL. */
  readonly #arrived = new Map<string, Call[]>()

  constructor(guards: readonly Guard[], rule: Rule) {
    this.rule = rule
    this.calls = guards.map((guard) => new Call(guard, rule))
  }

  /** Lets one call go a step, if it can. */
  step(call: Call): boolean {
    if (call.isOver) return false
    const place = call.places[call.placed]
    if (place !== undefined) {
      const taken = this.#take(this.#placed, `${call.guard.process}/${place}`, call)
      if (taken) call.placed += 1
      return taken
    }
    const key = call.guard.keys[call.locked]
    if (key !== undefined) {
      const taken = this.#take(this.#locked, key, call)
      if (taken) call.locked += 1
      return taken
    }
    if (call.guard.inner !== undefined && call.inner === undefined) {
      call.inner = new Call(call.guard.inner, this.rule, call)
      this.calls.push(call.inner)
      return true
    }
    if (call.inner !== undefined && !call.inner.isOver) return false
    call.isOver = true
    for (const held of [this.#placed, this.#locked] as Map<unknown, Call>[]) {
      for (const [what, by] of held) if (by === call) held.delete(what)
    }
    return true
  }

  /** First come, first served. */
  #take<K extends string | number>(held: Map<K, Call>, what: K, call: Call): boolean {
    const at = `${typeof what}${what}`
    const line = this.#arrived.get(at) ?? []
    this.#arrived.set(at, line)
    if (!line.includes(call)) line.push(call)
    if (held.has(what) || line[0] !== call) return false
    line.shift()
    held.set(what, call)
    return true
  }

  /** Whom a call would wait for without the queues. */
  waitsFor(call: Call): readonly Call[] {
    if (call.inner !== undefined) return call.inner.isOver ? [] : [call.inner]
    const key = call.guard.keys[call.locked]
    if (key === undefined) return []
    const holder = this.#locked.get(key)
    // Ahead in PostgreSQL, or on the way there with this key as the next one.
    const ahead = this.calls.filter(
      (other) => !other.isOver && other !== call && other.guard.keys[other.locked] === key,
    )
    return [
      ...(holder === undefined ? [] : [holder]),
      ...ahead.filter((each) => this.#isAhead(each, call)),
    ]
  }

  #isAhead(one: Call, other: Call): boolean {
    const placed = (call: Call): boolean => call.placed === call.places.length
    return placed(one) && !placed(other)
  }
}

/** Runs the calls in some order until none can go on; says whether the queues alone are to blame if some are left. */
function outcome(
  guards: readonly Guard[],
  rule: Rule,
  random: () => number,
): 'done' | 'stuck' | 'stuck by a queue' {
  const world = new World(guards, rule)
  for (;;) {
    const order = world.calls
      .map((call) => ({ call, at: random() }))
      .toSorted((a, b) => a.at - b.at)
    if (!order.some(({ call }) => world.step(call))) break
  }
  const left = world.calls.filter((call) => !call.isOver)
  if (left.length === 0) return 'done'
  // Without the queues a call goes on as soon as all have whom it waits for.
  let stuck = left
  for (;;) {
    const still = stuck.filter((call) => world.waitsFor(call).some((each) => stuck.includes(each)))
    if (still.length === stuck.length) break
    stuck = still
  }
  return stuck.length === left.length ? 'stuck' : 'stuck by a queue'
}

const keySets = fc.uniqueArray(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 2 })
const sorted = keySets.map((keys) => keys.toSorted((a, b) => a - b))
/** A body may call a guard of the other process, as it may not of its own (TX_NESTED). */
const guard: fc.Arbitrary<Guard> = fc
  .tuple(fc.integer({ min: 0, max: 1 }), sorted, fc.option(sorted, { nil: undefined }))
  .map(([process, keys, inner]) => ({
    process,
    keys,
    ...(inner === undefined ? {} : { inner: { process: 1 - process, keys: inner } }),
  }))
const worlds = fc.tuple(
  fc.array(guard, { minLength: 2, maxLength: 5 }),
  fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })),
)

/** The rule of the library, asked for keys whose numbers have this order. */
const lowest: Rule = (keys) => keys.slice(0, 1)
const all: Rule = (keys) => keys

const isStuckByQueue =
  (rule: Rule) =>
  ([guards, random]: [Guard[], fc.Stream<number>]): boolean =>
    outcome(guards, rule, () => random.next().value as number) === 'stuck by a queue'

describe('a guard waits in the process only for the key that PostgreSQL locks first', () => {
  test('nobody stands still who would not without the queues', () => {
    fc.assert(
      fc.property(worlds, (world) => {
        expect(isStuckByQueue(lowest)(world)).toBe(false)
      }),
      { numRuns: 5_000 },
    )
  })

  test('control: with a place at every key somebody does', () => {
    const { failed } = fc.check(
      fc.property(worlds, (world) => !isStuckByQueue(all)(world)),
      { numRuns: 20_000 },
    )
    expect(failed).toBe(true)
  })

  test('that is the rule in force', () => {
    const queues = new KeyQueues()
    const keys = ['a', 'b', 'c'].map((part) => lockKey('rule', part))
    const [low] = keys.toSorted((x, y) => (x.lock.id < y.lock.id ? -1 : 1))
    const at = (...wanted: Parameters<typeof queuedAt>[2]): unknown =>
      queuedAt({} as Driver<unknown>, queues, wanted)?.key
    expect(at(...keys.map((key) => ({ key, mode: 'exclusive' as const })))).toBe(low)
    expect(
      at(...keys.map((key) => (key === low ? shared(key) : { key, mode: 'exclusive' as const }))),
    ).toBeUndefined()
    expect(at(shared(keys[0] as never))).toBeUndefined()
  })
})
