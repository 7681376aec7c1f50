import fc from 'fast-check'
import type { Block, LockTree, ObservedSession } from 'holdfast/observe'
import { expect, test } from 'vitest'
import { type Branch, blockingForest } from '../../src/ui/graph/blocking-forest.ts'
import { layOut, size } from '../../src/ui/graph/graph-layout.ts'

function session(
  pid: number,
  blockedBy: readonly Block[] = [],
  lock = 'cart:7',
  waitingMs = 1000,
): ObservedSession {
  return {
    pid,
    hidden: false,
    application: `app-${pid}`,
    user: 'app',
    state: 'active',
    stateMs: 0,
    query: '',
    holds: [],
    ...(blockedBy.length === 0
      ? {}
      : {
          waitsFor: { kind: 'named', name: lock, source: 'annotation', mode: 'ExclusiveLock' },
          waitingMs,
        }),
    blockedBy,
    waiters: 0,
    advice: [],
  }
}

function tree(sessions: readonly ObservedSession[], roots: readonly number[]): LockTree {
  return { at: '2026-11-15T10:00:00Z', roots, sessions, capped: false, tookMs: 1 }
}

const hard = (pid: number): Block => ({ pid, kind: 'hard' })
const soft = (pid: number): Block => ({ pid, kind: 'soft' })

/** `1(2 3(4))` */
function written(forest: readonly Branch[]): string {
  return forest
    .map(({ session: { pid }, groups }) => {
      const under = written(groups.flatMap(({ branches }) => branches))
      return under === '' ? `${pid}` : `${pid}(${under})`
    })
    .join(' ')
}

test('a queue stands under its holder, the longest wait first', () => {
  const sessions = [
    session(1),
    session(3, [hard(1), soft(2)], 'cart:7', 10),
    session(2, [hard(1)], 'cart:7', 20),
  ]
  const [root] = blockingForest(tree(sessions, [1]))
  expect(written(root ? [root] : [])).toBe('1(2 3)')
  expect(root?.groups[0]?.branches[1]?.also).toEqual([soft(2)])
})

test('whoever waits for a holder stands under a holder, though it queues behind another root', () => {
  const sessions = [session(1), session(2), session(3, [soft(2), hard(1)]), session(4, [hard(2)])]
  expect(written(blockingForest(tree(sessions, [2, 1])))).toBe('2(4) 1(3)')
})

test('the order of roots is that of the server', () => {
  const sessions = [session(1), session(2), session(3, [hard(2)]), session(4, [hard(1)])]
  expect(written(blockingForest(tree(sessions, [2, 1])))).toBe('2(3) 1(4)')
})

test('groups of waiters for different locks are apart, the fuller first', () => {
  const sessions = [
    session(1),
    session(2, [hard(1)], 'a'),
    session(3, [hard(1)], 'b'),
    session(4, [hard(1)], 'b'),
  ]
  const [root] = blockingForest(tree(sessions, [1]))
  expect(root?.groups.map(({ lock }) => lock?.name)).toEqual(['b', 'a'])
})

test('a circle is cut at its first', () => {
  const sessions = [session(1, [hard(2)]), session(2, [hard(1)]), session(3, [hard(2)])]
  expect(written(blockingForest(tree(sessions, [1])))).toBe('1(2(3))')
})

test('a blocker that the server did not describe is there all the same', () => {
  const forest = blockingForest(tree([session(2, [hard(9)])], [9]))
  expect(written(forest)).toBe('9(2)')
  expect(forest[0]?.session.application).toBe('not visible')
})

test('holders whom nobody waits for are not drawn', () => {
  expect(blockingForest(tree([session(1)], []))).toEqual([])
})

const anyTree = fc
  .array(fc.array(fc.tuple(fc.nat(11), fc.boolean()), { maxLength: 4 }), { maxLength: 12 })
  .map((rows) =>
    rows.map((blocks, pid) =>
      session(
        pid + 1,
        [...new Map(blocks.map(([other, isHard]) => [other + 1, isHard]))].flatMap(
          ([other, isHard]) => (other === pid + 1 ? [] : [isHard ? hard(other) : soft(other)]),
        ),
        `lock ${pid % 3}`,
        pid,
      ),
    ),
  )

test('whatever blocks whatever, everybody is shown once and no card covers another', () => {
  fc.assert(
    fc.property(anyTree, (sessions) => {
      const involved = new Set(
        sessions.flatMap(({ pid, blockedBy }) =>
          blockedBy.length === 0 ? [] : [pid, ...blockedBy.map((block) => block.pid)],
        ),
      )
      const roots = sessions
        .filter(({ pid, blockedBy }) => blockedBy.length === 0 && involved.has(pid))
        .map(({ pid }) => pid)
      const { nodes, width, height } = layOut(blockingForest(tree(sessions, roots)), true)
      expect(nodes).toHaveLength(involved.size)
      expect(new Set(nodes.map((node) => node.session.pid))).toEqual(involved)
      for (const [at, one] of nodes.entries()) {
        expect(one.x + size.node.width).toBeLessThanOrEqual(width)
        expect(one.y + one.height).toBeLessThanOrEqual(height)
        for (const other of nodes.slice(at + 1)) {
          const apart =
            Math.abs(one.x - other.x) >= size.node.width ||
            one.y + one.height <= other.y ||
            other.y + other.height <= one.y
          expect([one.session.pid, other.session.pid, apart]).toEqual([
            one.session.pid,
            other.session.pid,
            true,
          ])
        }
      }
    }),
  )
})

test('of a long queue eight are drawn and the others counted, but for those who block others', () => {
  const queue = Array.from({ length: 30 }, (_, at) => session(100 + at, [hard(1)], 'hot', 30 - at))
  const sessions = [session(1), ...queue, session(200, [hard(125)], 'other')]
  const graph = layOut(blockingForest(tree(sessions, [1])))
  expect(graph.nodes).toHaveLength(1 + 8 + 1 + 1)
  expect(graph.rests).toMatchObject([{ hidden: 21, parent: 1 }])
  expect(layOut(blockingForest(tree(sessions, [1])), true).nodes).toHaveLength(32)
})

test('of those ahead in a queue only the last one is drawn', () => {
  const sessions = [
    session(1),
    session(2, [hard(1)], 'hot', 30),
    session(3, [hard(1), soft(2)], 'hot', 20),
    session(4, [hard(1), soft(2), soft(3)], 'hot', 10),
  ]
  const { edges } = layOut(blockingForest(tree(sessions, [1])))
  const drawn = edges.filter(({ kind }) => kind === 'soft').map(({ from, to }) => [from, to])
  expect(drawn).toEqual([
    [2, 3],
    [3, 4],
  ])
})
