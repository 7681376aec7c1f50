import { describe, expect, onTestFinished, test } from 'vitest'
import { channels } from '../../../src/core/events.ts'
import type { LockOrderEvent } from '../../../src/core/events/event-map.ts'
import { LockMemory } from '../../../src/core/locks/lock-memory.ts'
import { OrderGraph } from '../../../src/core/locks/order-graph.ts'
import { OrderWatch } from '../../../src/core/locks/order-watch.ts'
import { seenLocks } from '../../../src/engines/postgres/locks/lock-order.ts'
import type { LockMode } from '../../../src/core/locks/wanted-lock.ts'
import type { LockToken } from '../../../src/locks/engine.ts'
import {
  canDeadlock,
  type Call,
  type Instance,
  instancesOf,
  namespaceOf,
  type Shape,
  someSystem,
  stuckInterleaving,
} from '../../support/order-model.ts'

/**
 * The watch against a model of transactions that take locks. The model knows nothing of graphs: it looks for
 * transactions that, at some point of an interleaving, all wait for each other.
 */
const reports: LockOrderEvent[] = []

function listening(): void {
  reports.length = 0
  const listen = (event: unknown): void => void reports.push(event as LockOrderEvent)
  channels.lockOrder.subscribe(listen)
  onTestFinished(() => {
    channels.lockOrder.unsubscribe(listen)
  })
}

/** Lets a watch see transactions; what it tells is in `reports`. */
class Seeing {
  readonly watch = new OrderWatch()
  readonly #memory = new LockMemory()

  transaction(calls: readonly Call[], at = 'somewhere'): void {
    const held: LockToken[] = []
    for (const { locks, tries } of calls) {
      const granted: LockToken[] = locks
        .toSorted((a, b) => a.number - b.number)
        .map(({ number, mode }) => ({ mode, space: 1, id: BigInt(number) }))
      for (const { number } of locks) {
        const namespace = namespaceOf(number)
        const lock = { kind: 'bigint', id: BigInt(number) } as const
        this.#memory.note({ name: `${namespace}:${number}`, namespace, lock })
      }
      if (tries !== true) {
        const answer = {
          before: [...held],
          rowsBefore: [],
          granted,
          refused: undefined,
          complete: true,
          pid: 1,
        }
        const site = { stack: `Error\n    at ${at}` }
        const subject = () => ({ locks: [], pid: 1 })
        this.watch.saw(seenLocks(answer, this.#memory, this.watch), site, subject)
      }
      held.push(...granted)
    }
  }

  all(instances: readonly Instance[]): void {
    for (const { calls } of instances) this.transaction(calls)
  }
}

const x = 'exclusive' as const
const one = (namespace: string, mode: LockMode = x): Shape[number] => ({
  slots: [{ namespace, mode }],
})
const both = (...namespaces: readonly string[]): Shape[number] => ({
  slots: namespaces.map((namespace) => ({ namespace, mode: x })),
})

/** Systems that a reader can follow: what they are, and whether they can deadlock. */
const known: readonly [string, readonly Shape[], boolean][] = [
  ['always a, then b', [[one('a'), one('b')]], false],
  [
    'a, then b; b, then c; a, then c',
    [
      [one('a'), one('b')],
      [one('b'), one('c')],
      [one('a'), one('c')],
    ],
    false,
  ],
  [
    'a, then b; b, then a',
    [
      [one('a'), one('b')],
      [one('b'), one('a')],
    ],
    true,
  ],
  [
    'a circle of three',
    [
      [one('a'), one('b')],
      [one('b'), one('c')],
      [one('c'), one('a')],
    ],
    true,
  ],
  ['always both in one call', [[both('a', 'b')], [both('b', 'c')], [both('c', 'a')]], false],
  ['both in one call, and one after the other', [[both('a', 'b')], [one('a'), one('b')]], true],
  [
    'one call of a and b, one of b and c; a after c',
    [[both('a', 'b')], [both('b', 'c')], [one('c'), one('a')]],
    true,
  ],
  ['several of one namespace in one call', [[both('a', 'a')]], false],
  ['two of one namespace in two calls, any order', [[one('a'), one('a')]], true],
  ['two of one namespace in two calls, sorted', [[one('a'), { ...one('a'), sorted: true }]], false],
  [
    'the same, and others in one call',
    [[one('a'), { ...one('a'), sorted: true }], [both('a', 'a')]],
    false,
  ],
  ['a, b and another a', [[one('a'), one('b'), { ...one('a'), sorted: true }]], true],
  [
    'b is only tried',
    [
      [one('a'), one('b')],
      [one('b'), { ...one('a'), tries: true }],
    ],
    false,
  ],
  [
    'what was tried is held',
    [
      [{ ...one('a'), tries: true }, one('b')],
      [one('b'), one('a')],
    ],
    true,
  ],
  ['an upgrade', [[one('a', 'shared'), { ...one('a'), again: true }]], true],
  [
    'shared, both orders',
    [
      [one('a', 'shared'), one('b', 'shared')],
      [one('b', 'shared'), one('a', 'shared')],
    ],
    false,
  ],
  [
    'one side exclusive on one',
    [
      [one('a'), one('b', 'shared')],
      [one('b', 'shared'), one('a', 'shared')],
    ],
    false,
  ],
  [
    'shared meets exclusive twice',
    [
      [one('a'), one('b', 'shared')],
      [one('b'), one('a', 'shared')],
    ],
    true,
  ],
]

describe('T3: what is told is what can deadlock', () => {
  test.each(known)('%s', (_name, shapes, deadlocks) => {
    listening()
    const instances = shapes.flatMap(instancesOf)
    new Seeing().all(instances)
    const stuck = canDeadlock(instances)
    expect(stuck !== undefined).toBe(deadlocks)
    // Not only by argument: these transactions, step by step, do get stuck.
    if (stuck !== undefined) expect(stuckInterleaving(stuck)).toBe(true)
    expect(reports.length > 0).toBe(deadlocks)
  })

  test('generated systems: told if and only if they can deadlock', () => {
    listening()
    const systems = Number(process.env['HOLDFAST_ORDER_SYSTEMS'] ?? 150)
    const outcomes = { deadlock: 0, safe: 0 }
    for (let seed = 1; seed <= systems; seed += 1) {
      const shapes = someSystem(seed)
      const instances = shapes.flatMap(instancesOf)
      reports.length = 0
      new Seeing().all(instances)
      const stuck = canDeadlock(instances)
      const told = reports.length > 0
      if (told !== (stuck !== undefined)) {
        throw new Error(
          `seed ${seed}: told ${told}, can deadlock ${stuck !== undefined}: ${JSON.stringify(shapes)}`,
        )
      }
      if (stuck !== undefined) expect(stuckInterleaving(stuck)).toBe(true)
      outcomes[stuck === undefined ? 'safe' : 'deadlock'] += 1
    }
    // Both kinds were among them, so neither "always" nor "never" would have passed.
    expect(Math.min(outcomes.deadlock, outcomes.safe)).toBeGreaterThan(systems / 10)
  })

  test('row 5: 10,000 transactions in one order over all namespaces: nothing; one opposite: once', () => {
    listening()
    const seeing = new Seeing()
    const lock = (turn: number, namespace: number) => [
      { number: ((turn * 7919) % 5_000) * 3 + namespace, mode: x },
    ]
    for (let turn = 0; turn < 10_000; turn += 1) {
      const calls = [0, 1, 2].map((at) => ({ locks: lock(turn * (at + 1), at) }))
      seeing.transaction(calls, 'the usual place')
    }
    expect(reports).toEqual([])
    for (const turn of [1, 2]) {
      seeing.transaction([{ locks: lock(turn, 2) }, { locks: lock(turn, 0) }], 'another place')
    }
    expect(reports.map(({ cycle }) => cycle)).toEqual([
      [
        { before: 'c', after: 'a', together: false, at: 'another place' },
        { before: 'a', after: 'c', together: false, at: 'the usual place' },
      ],
    ])
  })

  test('it remembers no more than it may, whatever namespaces are made of', () => {
    listening()
    const graph = new OrderGraph()
    const learn = (from: string, to: string): boolean =>
      graph.learn([{ node: from, mode: x }], [{ node: to, mode: x }], () => 'here') !== undefined
    learn('early', 'late')
    for (let turn = 0; turn < 6_000; turn += 1) learn(`tenant-${turn}`, `tenant-${turn + 1}`)
    expect(learn('tenant-1', 'tenant-0')).toBe(false)
    expect(graph.size).toBe(5_000)
  })
})
