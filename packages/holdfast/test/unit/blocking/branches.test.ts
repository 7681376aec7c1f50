import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Branch, lockBranches } from '../../../src/blocking/branches.ts'
import type { Block, LockTree, ObservedSession } from '../../../src/blocking/model.ts'

function session(pid: number, blockedBy: readonly Block[], waiters: number): ObservedSession {
  return {
    pid,
    application: '',
    hidden: false,
    user: '',
    state: 'active',
    stateMs: 0,
    query: '',
    holds: [],
    blockedBy,
    waiters,
    advice: [],
  }
}

function treeOf(edges: Readonly<Record<number, readonly Block[]>>, roots: number[]): LockTree {
  const sessions = Object.entries(edges).map(([pid, by]) => session(Number(pid), by, 1))
  return { at: '', roots, sessions, capped: false, tookMs: 0 }
}

const hard = (pid: number): Block => ({ pid, kind: 'hard' })
const soft = (pid: number): Block => ({ pid, kind: 'soft' })
const shape = (branches: readonly Branch[]): unknown =>
  branches.map(({ session: { pid }, below }) => [pid, shape(below)])

test('a waiter is below one that holds what it wants, not below the queue', () => {
  const tree = treeOf({ 1: [], 2: [hard(1)], 3: [soft(2), hard(1)] }, [1])
  expect(shape(lockBranches(tree))).toEqual([
    [
      1,
      [
        [2, []],
        [3, []],
      ],
    ],
  ])
  expect(lockBranches(tree)[0]?.below[1]?.also).toEqual([soft(2)])
})

test('favourites that go round in a circle are drawn below whoever is there', () => {
  const tree = treeOf({ 1: [], 2: [hard(3), soft(1)], 3: [hard(2)] }, [1])
  expect(shape(lockBranches(tree))).toEqual([[1, [[2, [[3, []]]]]]])
})

test('everybody whom a root leads to is drawn exactly once', () => {
  const pids = Array.from({ length: 12 }, (_, at) => at + 1)
  const graph = fc.tuple(
    ...pids.map((pid) =>
      fc.array(fc.integer({ min: 0, max: Math.max(1, pid) }), { minLength: 1, maxLength: 3 }),
    ),
  )
  fc.assert(
    fc.property(graph, (all) => {
      const edges: Record<number, Block[]> = { 0: [] }
      all.forEach((by, at) => (edges[at + 1] = [hard(0), ...by.map(soft)]))
      const drawn: number[] = []
      const walk = (branches: readonly Branch[]): void =>
        branches.forEach((branch) => {
          drawn.push(branch.session.pid)
          walk(branch.below)
        })
      walk(lockBranches(treeOf(edges, [0])))
      expect(drawn.toSorted((a, b) => a - b)).toEqual([0, ...pids])
    }),
  )
})
