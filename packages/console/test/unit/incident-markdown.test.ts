import type { LockTree, ObservedLock, ObservedSession } from 'holdfast/observe'
import { expect, test } from 'vitest'
import { blockingForest } from '../../src/ui/graph/blocking-forest.ts'
import { incidentMarkdown } from '../../src/ui/pages/now/incident-markdown.ts'

const cart: ObservedLock = {
  kind: 'named',
  name: 'cart:7',
  source: 'annotation',
  mode: 'ExclusiveLock',
}

function session(pid: number, more: Partial<ObservedSession>): ObservedSession {
  const none = { holds: [], blockedBy: [], waiters: 0, advice: [] }
  const state = { state: 'active', stateMs: 0, query: '', hidden: false }
  return { pid, application: `app-${pid}`, user: 'app', ...state, ...none, ...more }
}

const blockedBy = (pid: number, kind: 'hard' | 'soft' = 'hard'): Partial<ObservedSession> => ({
  blockedBy: [{ pid, kind }],
  waitsFor: cart,
  waitingMs: 12_000,
})

function written(sessions: readonly ObservedSession[]): string {
  const tree: LockTree = {
    at: '2026-11-15T10:00:00Z',
    roots: [1],
    sessions,
    capped: false,
    tookMs: 1,
  }
  return incidentMarkdown(tree, blockingForest(tree), 'shop')
}

test('says who waits for whom, for how long, and what to do', () => {
  const text = written([
    session(1, {
      application: 'billing',
      state: 'idle in transaction',
      stateMs: 20_000,
      transactionMs: 25_000,
      waiters: 2,
      query: 'SELECT 1',
      advice: [{ code: 'idle-in-transaction', what: 'It does nothing.', fix: 'End it.' }],
    }),
    session(2, blockedBy(1)),
    session(3, blockedBy(2, 'soft')),
  ])
  expect(text.split('\n').filter((line) => !line.startsWith('Seen at'))).toEqual([
    '### 2 sessions wait for locks in `shop`',
    '',
    '',
    '- `billing`, pid 1: idle in transaction for 20 s, transaction open for 25 s, blocks 2 sessions',
    '  - `app-2`, pid 2: waits 12 s for `cart:7` (exclusive)',
    '    - `app-3`, pid 3: waits 12 s for `cart:7` (exclusive), queued behind it',
    '',
    '**Do** (`billing`, pid 1): It does nothing. End it.',
    '',
    'Last statement of `billing`, pid 1:',
    '',
    '```sql',
    'SELECT 1',
    '```',
  ])
  expect(text).toContain('(2026-11-15T10:00:00Z)')
})

test('names and statements are text, whatever they contain', () => {
  const text = written([
    session(1, { application: '`</b> **x**\n# y', query: 'SELECT ```', waiters: 1 }),
    session(2, blockedBy(1)),
  ])
  expect(text).toContain('- `` `</b> **x** # y ``, pid 1')
  expect(text).toContain('````sql\nSELECT ```\n````')
})

test('of a long queue the first ones are listed, and the others counted', () => {
  const queue = Array.from({ length: 50 }, (_, at) => session(at + 2, blockedBy(1)))
  const lines = written([session(1, { waiters: 50 }), ...queue]).split('\n')
  expect(lines.filter((line) => line.startsWith('  - `'))).toHaveLength(20)
  expect(lines).toContain('  - and 30 more')
})
