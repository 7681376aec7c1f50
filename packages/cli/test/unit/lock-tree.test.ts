import { describe, expect, test } from 'vitest'
import { renderLocks } from '../../src/render/lock-tree.ts'
import { chainTo, renderWhy } from '../../src/render/why.ts'
import { age } from '../../src/render/words.ts'
import { coloured, plain } from '../../src/terminal/paint.ts'
import { textWidth } from '../../src/terminal/text-width.ts'
import { hostile, incident, lock, session, tree } from '../support/lock-trees.ts'

const look = { width: 80, paint: plain }

describe('locks', () => {
  test('the tree, root first', () => {
    expect(renderLocks(incident, look).join('\n')).toMatchInlineSnapshot(`
      "3 sessions wait, for up to 11 s; 1 is at the root of it.

      billing 1  blocks 3 · idle in transaction for 12 s · transaction 12 s
      │  holds cart:7, row of public.orders
      │  last: SELECT name FROM accounts FOR UPDATE
      │  ! Its transaction is open and it does nothing.
      │    → Find what it waits for, or end it.
      ├─ checkout 2  waits 11 s for cart:7 · blocks 1 · holds user:4
      │  └─ queue 3  waits 900 ms for cart:7, in the queue
      │        SELECT 1
      └─ editor 4  waits 3.2 s for row of public.orders · also behind 2
            UPDATE orders SET state = 'archived' WHERE id = 1

      Holding locks that nobody waits for:
        quiet 5  active for 1.0 s · transaction 400 ms · holds cart:9"
    `)
  })

  test.each([40, 60, 80, 200])('no line is wider than %i columns', (width) => {
    for (const line of renderLocks(incident, { width, paint: plain })) {
      expect(textWidth(line)).toBeLessThanOrEqual(width)
    }
  })

  test('nobody waits', () => {
    expect(renderLocks(tree([], []), look)).toEqual(['Nobody waits for a lock.'])
  })

  test('colours change nothing but the colour', () => {
    const painted = renderLocks(incident, { ...look, paint: coloured }).join('\n')
    expect(painted).toContain('\u001B[')
    // oxlint-disable-next-line no-control-regex -- what colours are made of
    expect(painted.replaceAll(/\u001B\[\d+m/g, '')).toBe(renderLocks(incident, look).join('\n'))
  })

  test('a circle and a prepared transaction are drawn, each session once', () => {
    const circle = tree(
      [1, 0],
      [
        session(0, { waiters: 1, holds: [lock('cart:1')], state: 'prepared' }),
        session(1, {
          waitsFor: lock('b:1'),
          waitingMs: 9,
          blockedBy: [{ pid: 2, kind: 'hard' }],
          waiters: 1,
        }),
        session(2, {
          waitsFor: lock('a:1'),
          waitingMs: 8,
          blockedBy: [{ pid: 1, kind: 'hard' }],
          waiters: 1,
        }),
        session(3, {
          waitsFor: lock('cart:1'),
          waitingMs: 7,
          blockedBy: [{ pid: 0, kind: 'hard' }],
        }),
      ],
    )
    const text = renderLocks(circle, look).join('\n')
    for (const name of ['app-1', 'app-2', 'app-3']) expect(text.split(name)).toHaveLength(2)
    expect(text).toContain('prepared transaction  blocks 1 · holds cart:1')
  })

  test('nothing that others wrote moves the cursor', () => {
    const attack = session(7, {
      application: hostile,
      query: hostile,
      state: hostile,
      holds: [lock(hostile)],
      waiters: 1,
      advice: [{ code: 'long-transaction', what: hostile, fix: hostile }],
    })
    const victim = session(8, {
      waitsFor: lock(hostile),
      waitingMs: 1,
      blockedBy: [{ pid: 7, kind: 'hard' }],
    })
    const attacked = tree([7], [attack, victim])
    const text = [
      ...renderLocks(attacked, look),
      ...renderWhy(attacked, chainTo(attacked, 8), look),
    ].join('\n')
    // oxlint-disable-next-line no-control-regex -- that is what it is for
    expect(text).not.toMatch(/[\u0000-\u0009\u000B-\u001F\u007F-\u009F\u202E\u200B]/u)
    expect(text).toContain('\\x1b[2J')
  })
})

describe('why', () => {
  test('from a session to the root, in sentences', () => {
    expect(renderWhy(incident, chainTo(incident, 3), look).join('\n')).toMatchInlineSnapshot(`
      "queue (pid 3)
        has waited 900 ms for cart:7, behind checkout (pid 2), which is ahead in the
        queue.
          SELECT 1

      checkout (pid 2)
        has waited 11 s for cart:7, which billing (pid 1) holds.
        holds user:4.

      billing (pid 1)
        waits for nobody: it is the root, and 3 sessions wait for it.
        is idle in transaction for 12 s, in a transaction that is 12 s old.
        holds cart:7, row of public.orders.
          last: SELECT name FROM accounts FOR UPDATE
        ! Its transaction is open and it does nothing.
          → Find what it waits for, or end it.

      To end its session, which rolls its transaction back:
        holdfast cancel 1 --terminate --seen ho6h1sn400-ho6ip4ueip --yes"
    `)
  })

  test('one who runs something is cancelled, one who is idle is ended', () => {
    const busy = tree(
      [1],
      [
        session(1, { waiters: 1 }),
        session(2, { waitsFor: lock('a:1'), waitingMs: 1, blockedBy: [{ pid: 1, kind: 'hard' }] }),
      ],
    )
    expect(renderWhy(busy, chainTo(busy, 2), look).at(-1)).toBe(
      '  holdfast cancel 1 --seen ho6h1sn400-ho6ip4ueip --yes',
    )
    expect(renderWhy(incident, chainTo(incident, 2), look).at(-1)).toBe(
      '  holdfast cancel 1 --terminate --seen ho6h1sn400-ho6ip4ueip --yes',
    )
  })

  test('one who waits for nobody and blocks nobody', () => {
    expect(renderWhy(incident, chainTo(incident, 5), look)).toEqual([
      'quiet (pid 5)',
      '  waits for nobody.',
      '  is active for 1.0 s, in a transaction that is 400 ms old.',
      '  holds cart:9.',
      '    SELECT 1',
    ])
  })
})

test.each([
  [0, '0 ms'],
  [999, '999 ms'],
  [9_999, '9.9 s'],
  [61_000, '1 min 1 s'],
  [3_600_000, '1 h'],
  [93_600_000, '1 d 2 h'],
])('%i ms is %s', (ms, text) => expect(age(ms)).toBe(text))
