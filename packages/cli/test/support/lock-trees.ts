import type { LockTree, ObservedLock, ObservedSession } from 'holdfast/observe'

export function lock(name: string, kind: ObservedLock['kind'] = 'named'): ObservedLock {
  return { kind, name, source: 'annotation', mode: 'ExclusiveLock' }
}

export function session(pid: number, some: Partial<ObservedSession> = {}): ObservedSession {
  return {
    pid,
    startedAt: '2026-11-15T09:00:00.000000Z',
    transactionStartedAt: '2026-11-15T09:59:48.000001Z',
    hidden: false,
    application: `app-${pid}`,
    user: 'app',
    state: 'active',
    stateMs: 1_000,
    query: 'SELECT 1',
    holds: [],
    blockedBy: [],
    waiters: 0,
    advice: [],
    ...some,
  }
}

export function tree(roots: readonly number[], sessions: readonly ObservedSession[]): LockTree {
  return {
    at: '2026-11-15T10:00:00.000000Z',
    roots,
    sessions,
    capped: false,
    tookMs: 3.2,
  } as LockTree
}

/** One idle root, two who wait for it, and one in the queue behind one of them. */
export const incident: LockTree = tree(
  [1],
  [
    session(1, {
      application: 'billing',
      state: 'idle in transaction',
      stateMs: 12_300,
      transactionMs: 12_500,
      query: 'SELECT name\n  FROM accounts FOR UPDATE',
      holds: [lock('cart:7'), lock('row of public.orders', 'row')],
      waiters: 3,
      advice: [
        {
          code: 'idle-in-transaction',
          what: 'Its transaction is open and it does nothing.',
          fix: 'Find what it waits for, or end it.',
        },
      ],
    }),
    session(2, {
      application: 'checkout',
      waitsFor: lock('cart:7'),
      waitingMs: 11_000,
      blockedBy: [{ pid: 1, kind: 'hard' }],
      holds: [lock('user:4')],
      waiters: 1,
      query: "SELECT set_config('holdfast.held', …)",
    }),
    session(3, {
      application: 'queue',
      waitsFor: lock('cart:7'),
      waitingMs: 900,
      blockedBy: [{ pid: 2, kind: 'soft' }],
    }),
    session(4, {
      application: 'editor',
      waitsFor: lock('row of public.orders', 'row'),
      waitingMs: 3_250,
      blockedBy: [
        { pid: 1, kind: 'hard' },
        { pid: 2, kind: 'soft' },
      ],
      query: "UPDATE orders SET state = 'archived' WHERE id = 1",
    }),
    session(5, { application: 'quiet', holds: [lock('cart:9')], transactionMs: 400 }),
  ],
)

/** What an attacker can put into names, application names and queries. */
export const hostile = '\u001B[2J\u001B]0;owned\u0007\u009B31m\u202Egnp.exe\r\nDROP\u200B'
