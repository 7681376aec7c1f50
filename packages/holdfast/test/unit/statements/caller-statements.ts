import { lockKey } from '../../../src/core/locks/lock-key.ts'
import * as check from '../../../src/engines/postgres/claims/check.ts'
import * as dead from '../../../src/engines/postgres/claims/dead.ts'
import * as finish from '../../../src/engines/postgres/claims/finish.ts'
import * as turns from '../../../src/engines/postgres/claims/turns.ts'
import * as claims from '../../../src/engines/postgres/claims/claims.ts'
import type { TableName } from '../../../src/core/table-name.ts'
import * as holders from '../../../src/engines/postgres/locks/lock-holders.ts'
import * as locks from '../../../src/engines/postgres/locks/locks.ts'
import * as observed from '../../../src/engines/postgres/observe/claims.ts'
import * as blockers from '../../../src/engines/postgres/rows/row-blockers.ts'
import type { VersionedTarget } from '../../../src/rows/engine.ts'
import * as version from '../../../src/engines/postgres/rows/row-version.ts'
import * as rows from '../../../src/engines/postgres/rows/rows.ts'
import * as tableLock from '../../../src/engines/postgres/rows/table-lock.ts'
import * as limit from '../../../src/engines/postgres/tx/wait-limit.ts'

/** Statements that run in transactions of callers, or read tables of theirs, by file and export. */

export const schema = 'holdfast'
/** The only name that is found by the caller's search_path: it is the caller's. */
export const callersTable = 'callers'

const both = [true, false] as const
const tables: readonly TableName[] = [
  { table: callersTable },
  { schema: 'app', table: callersTable },
]

/** What `of` makes of every combination. */
function product<T extends Record<string, readonly unknown[]>>(
  options: T,
  of: (one: { [K in keyof T]: T[K][number] }) => unknown,
): unknown[] {
  let all: Record<string, unknown>[] = [{}]
  for (const [name, values] of Object.entries(options)) {
    all = all.flatMap((one) => values.map((value) => ({ ...one, [name]: value })))
  }
  return all.map((one) => of(one as { [K in keyof T]: T[K][number] }))
}

const key = lockKey('test', 1)
const hashed = { ...key, lock: { kind: 'pair-hashtext', high: 1, text: 'a' } as const }
const wanted = [
  { key, mode: 'exclusive' },
  { key: hashed, mode: 'shared' },
] as const

const limits = [
  { limitMs: undefined, yields: true, budgetMs: undefined },
  { limitMs: 10, yields: false, budgetMs: 20 },
] as const
const waiter = { waitedMs: 5, pid: 1, hasTable: false }

const layout: dead.DeadLayout = {
  table: { table: callersTable },
  key: ['id', 'part'],
  status: 'status',
  pending: "'pending'",
  claimed: "'claimed'",
  done: "'done'",
  dead: "'dead'",
  where: [
    ['kind', "'mail'"],
    ['gone', null],
  ],
  runAt: 'run_at',
  priority: { column: 'priority', first: 'largest' },
  order: ['run_at', 'id'],
  columns: undefined,
  token: 'claim_token',
  leaseUntil: 'lease_until',
  attempts: 'attempts',
  maxAttempts: { column: 'most' },
  error: 'error',
  holder: 'holder',
  finishedAt: 'finished_at',
  shard: { schema, bucket: 'part' },
  listedBy: ['run_at', 'id'],
  asJson: true,
}
const { shard: _, ...unsharded } = layout
const layouts: readonly dead.DeadLayout[] = [
  layout,
  {
    ...unsharded,
    table: { schema: 'app', table: callersTable },
    key: ['id'],
    pending: null,
    priority: undefined,
    runAt: undefined,
    done: undefined,
    attempts: undefined,
    maxAttempts: 5,
    finishedAt: undefined,
    holder: undefined,
    error: undefined,
    asJson: false,
    columns: ['id'],
    texts: ['id'],
  },
  { ...unsharded, priority: undefined, maxAttempts: 3, columns: ['id'] },
  // Types of an extension.
  { ...unsharded, operators: { id: 'ext', status: 'ext', tenant: 'ext', priority: 'ext' } },
]
const rate = { schema, name: 'mail', most: 3, perMs: 1000 }
const turnsOf = (limited: boolean): claims.Turns => ({
  column: 'tenant',
  limit: limited ? 2 : undefined,
  rate: limited ? rate : undefined,
  keysJson: '[]',
  count: 3,
})
const requests: readonly claims.ClaimRequest[] = [
  { limit: 3, joined: true, turns: undefined },
  { limit: 3, joined: false, turns: turnsOf(true) },
  { limit: 3, joined: false, turns: turnsOf(false) },
]
const turnRequests = [undefined, 'a'].map((after) => ({ column: 'tenant', most: 3, after }))

const target: VersionedTarget = {
  table: { table: callersTable },
  keyColumns: ['id', 'part'],
  versionColumn: 'version',
}
const columnsOf = [undefined, ['id', 'name']] as const

export const callerStatements: Readonly<Record<string, Readonly<Record<string, () => unknown>>>> = {
  'locks/locks.ts': {
    lockStatement: () =>
      product(
        {
          attempt: both,
          limitMs: [undefined, 10],
          yields: both,
          budgetMs: [undefined, 20],
          label: [undefined, 'a'],
          allowStaleSnapshot: both,
          first: both,
          brief: both,
          wanted: [wanted, [wanted[0]], [{ key, mode: 'shared' as const }]],
        },
        (request) => locks.lockStatement(request),
      ),
  },
  'locks/lock-holders.ts': {
    heldStatement: () => [
      holders.heldStatement(key, 'shared'),
      holders.heldStatement(key, 'exclusive'),
    ],
    lockHolders: () => holders.lockHolders(wanted, 5),
    stillHeld: () => holders.stillHeld([{ pid: 1, space: 1, id: 2n }]),
  },
  'tx/wait-limit.ts': {
    limitWait: () => [
      ...limits.map((each) => limit.limitWait(each)),
      ...limits.map((each) => limit.limitWait(each, 'each')),
    ],
    utilityLimit: () => {
      const { set, restore } = limit.utilityLimit(limits[1], '1s', '0')
      return [set, restore]
    },
  },
  'rows/rows.ts': {
    readKeys: () => rows.readKeys(target, '[]'),
    rowLockStatement: () =>
      product(
        {
          keyCount: [1, 2],
          strength: ['update', 'share'] as const,
          patience: ['wait', 'skip', 'fail'] as const,
          columns: columnsOf,
          versionColumn: [undefined, 'version'],
          unsure: both,
          table: tables,
        },
        ({ table, ...request }) =>
          rows.rowLockStatement({ ...request, keysJson: '[]', target: { ...target, table } }),
      ),
  },
  'rows/row-version.ts': {
    readVersion: () => columnsOf.map((columns) => version.readVersion(target, '{}', columns)),
    updateVersion: () =>
      product({ columns: columnsOf, unsure: both }, ({ columns, unsure }) =>
        version.updateVersion(
          target,
          { soughtJson: '{}', setJson: '{}' },
          ['name'],
          columns,
          unsure,
        ),
      ),
    countVersion: () => version.countVersion(target, '{}'),
  },
  'rows/row-blockers.ts': {
    boundLookup: () => blockers.boundLookup(5),
    tableLockHolders: () =>
      both.map((indexes) => blockers.tableLockHolders(target.table, 'exclusive', waiter, indexes)),
    rowLockHolders: () => blockers.rowLockHolders(target, '[]', waiter),
    rowShareHolders: () => blockers.rowShareHolders(target, '[]', 'update', waiter),
  },
  'rows/table-lock.ts': {
    lockTableText: () =>
      both.map((nowait) => tableLock.lockTableText(target.table, 'share', nowait)),
  },
  'claims/claims.ts': {
    claimRows: () =>
      layouts.flatMap((each) =>
        requests.map((request) =>
          claims.claimRows(each, request, { token: 'a', ms: 5, holder: 'me' }),
        ),
      ),
    takeRows: () =>
      layouts.flatMap((each) => requests.map((request) => claims.takeRows(each, request))),
  },
  'claims/turns.ts': {
    nextTurns: () =>
      layouts.flatMap((each) => turnRequests.map((request) => turns.nextTurns(each, request))),
    lockTurns: () =>
      layouts.flatMap((each) =>
        turnRequests.map((request) => turns.lockTurns(each, request, { limit: 2, rate })),
      ),
    noteClaims: () => turns.noteClaims(rate, { a: 1 }),
  },
  'claims/finish.ts': {
    finishRows: () =>
      layouts.flatMap((each) =>
        (['complete', 'fail', 'release', 'heartbeat'] as const).map((verb) =>
          finish.finishRows(each, verb, [{ key: ['1', '2'], token: 'a' }], 5),
        ),
      ),
    finishTaken: () => layouts.map((each) => finish.finishTaken(each, [['1', '2']])),
    recoverRows: () => layouts.map((each) => finish.recoverRows(each, 5)),
  },
  'claims/dead.ts': {
    listDead: () =>
      layouts.flatMap((each) => [dead.listDead(each, 5, undefined), dead.listDead(each, 5, '{}')]),
    findDead: () => layouts.map((each) => dead.findDead(each, ['1', '2'])),
    changeDead: () =>
      layouts.flatMap((each) =>
        (['retry', 'delete'] as const).map((verb) => dead.changeDead(each, verb, [['1', '2']])),
      ),
  },
  'claims/check.ts': {
    describeTable: () => layouts.map((each) => check.describeTable(each)),
    // An index is made by whoever reads the advice, in a session of theirs.
    probesOf: () =>
      layouts.map((each) =>
        check.probesOf(each, { column: 'tenant', limit: 2 }).map(({ explain }) => explain),
      ),
  },
  'observe/claims.ts': {
    claimCounts: () =>
      layouts.map((each) =>
        observed.claimCounts(each).map(({ explain, count }) => [explain, count]),
      ),
    findWork: () => observed.findWork(schema),
    allQueues: () => observed.allQueues(schema),
    liveQueues: () => observed.liveQueues(schema),
  },
}
