import fc from 'fast-check'
import { expect, test } from 'vitest'
import { waitersOf } from '../../../src/blocking/waiters-of.ts'
import { inTime } from '../../support/in-time.ts'

/** The same, one step after the other. */
function slowly(edges: ReadonlyMap<number, readonly number[]>, pid: number): Set<number> {
  const found = new Set<number>()
  const open = [pid]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const [waiter, blockers] of edges) {
      if (!blockers.includes(next) || found.has(waiter)) continue
      found.add(waiter)
      open.push(waiter)
    }
  }
  return found
}

test('everybody who waits, however far behind, also in circles', () => {
  const pids = fc.integer({ min: 0, max: 70 })
  const graph = fc.dictionary(pids.map(String), fc.uniqueArray(pids, { maxLength: 4 }), {
    maxKeys: 70,
  })
  fc.assert(
    fc.property(graph, (drawn) => {
      const edges = new Map(Object.entries(drawn).map(([pid, by]) => [Number(pid), by]))
      for (const [pid, waiters] of waitersOf(edges)) expect(waiters).toEqual(slowly(edges, pid))
    }),
  )
})

test('a queue of five hundred is no matter', () => {
  const edges = new Map(
    Array.from({ length: 500 }, (_, at) => [at + 1, Array.from({ length: at + 1 }, (__, n) => n)]),
  )
  const began = performance.now()
  expect(waitersOf(edges).get(0)?.size).toBe(500)
  inTime(performance.now() - began, 2_000)
})
