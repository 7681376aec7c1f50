/** Reports written by hand, one for each thing that a report can say. */
import type {
  Coverage,
  Failure,
  FinalTable,
  FlowOutcome,
  KnownColumn,
  KnownTable,
  Report,
  Run,
  Step,
} from '../../src/core/model.ts'
import { type Line, type Play, runOf } from './play.ts'

export const coverage: Coverage = {
  exhaustive: false,
  schedules: 4,
  classes: 2,
  interleavings: 70n,
  overlapped: true,
  blockedEpisodes: 0,
  deadlocks: 0,
  crashPoints: 0,
  milliseconds: 62,
}

interface Parts {
  readonly name: string
  readonly play: Play
  readonly failure?: Partial<Failure>
  readonly run?: Partial<Run>
  /** What each serial order left. */
  readonly serial?: readonly Partial<Run>[]
  readonly known?: readonly KnownTable[]
}

/** A table as the seed left it: `known('users', { id: 'int4' }, [['1']])`. The first column is the key. */
export function known(
  name: string,
  columns: Readonly<Record<string, string | (Partial<KnownColumn> & { readonly type: string })>>,
  rows: KnownTable['rows'] = [],
): KnownTable {
  const all = Object.entries(columns).map(([column, more], at): KnownColumn => {
    const rest = typeof more === 'string' ? { type: more } : more
    return { name: column, exact: true, key: at === 0, ...rest }
  })
  return { name: `public.${name}`, columns: all, uniques: [[all[0]?.name ?? '']], rows }
}

/** A report of a race. */
export function raceReport({
  name,
  play,
  failure = {},
  run = {},
  serial = [],
  known: tables,
}: Parts): Report {
  const orders = [
    [0, 1],
    [1, 0],
  ]
  return {
    name,
    flows: play.flows,
    verdict: 'race',
    coverage,
    notes: [],
    server: 'PostgreSQL 15.19, read committed',
    ...(tables === undefined ? {} : { known: tables }),
    failure: {
      kind: 'not-serial',
      message: 'the final state is that of no serial order',
      run: runOf(play, run),
      serial: serial.map((one, at) => ({
        order: orders[at] ?? [],
        run: runOf({ ...play, lines: [] }, one),
      })),
      token: 'r1.7f3c.a2b4a2',
      reproduced: [5, 5],
      ...failure,
    },
  }
}

export function greenReport(rest: Partial<Report> = {}): Report {
  return {
    name: 'reserve seat',
    flows: ['alice', 'bob'],
    verdict: 'race-free',
    coverage: {
      ...coverage,
      exhaustive: true,
      schedules: 6,
      classes: 4,
      interleavings: 252n,
      blockedEpisodes: 2,
    },
    notes: [],
    server: 'PostgreSQL 15.19, read committed',
    ...rest,
  }
}

const ok: FlowOutcome = { kind: 'returned', value: '"in"' }
const full: FlowOutcome = { kind: 'threw', name: 'QuotaExceeded', message: '100 of 100' }

const begin = (who: string): Line => ({ who, sql: 'BEGIN' })
const commit = (who: string): Line => ({ who, sql: 'COMMIT' })

const count = (who: string): Line => ({
  who,
  sql: 'SELECT count(*)::int AS used FROM uploads WHERE user_id = $1',
  parameters: ['1'],
  touches: { read: 'public.uploads' },
  rows: [['used'], ['99']],
})
const upload = (who: string): Line => ({
  who,
  sql: 'INSERT INTO uploads (user_id, name) VALUES ($1, $2)',
  parameters: ['1', `${who}.png`],
  touches: { append: 'public.uploads' },
})

const uploads = (names: readonly string[]): FinalTable => ({
  name: 'public.uploads',
  columns: ['user_id', 'name'],
  rows: [
    ...Array.from({ length: 99 }, (_, at) => ['1', `${at + 1}.png`]),
    ...names.map((name) => ['1', name]),
  ],
})
const users: FinalTable = { name: 'public.users', columns: ['id', 'quota'], rows: [['1', '100']] }

export const quotaPlay: Play = {
  flows: ['alice', 'bob'],
  lines: [
    begin('alice'),
    count('alice'),
    begin('bob'),
    count('bob'),
    upload('bob'),
    commit('bob'),
    upload('alice'),
    commit('alice'),
  ],
}

export const quota: Report = raceReport({
  name: 'upload within the quota',
  play: quotaPlay,
  run: { tables: [users, uploads(['bob.png', 'alice.png'])], outcomes: [ok, ok] },
  serial: [
    { tables: [users, uploads(['alice.png'])], outcomes: [ok, full] },
    { tables: [users, uploads(['bob.png'])], outcomes: [full, ok] },
  ],
  failure: { kind: 'invariant', message: '101 uploads, the quota is 100' },
  known: [
    known('users', { id: 'int4', quota: 'int4' }, [['1', '100']]),
    known('uploads', {
      id: 'int4',
      user_id: { type: 'int4', refers: { table: 'public.users', column: 'id' } },
      name: 'text',
    }),
  ],
})

const stock = (qty: string): FinalTable => ({
  name: 'public.stock',
  columns: ['sku', 'qty'],
  rows: [['A-1', qty]],
})
const look = (who: string, locking = ''): Line => ({
  who,
  sql: `SELECT "public"."stock"."sku", "public"."stock"."qty" FROM "public"."stock" WHERE ("public"."stock"."sku" = $1 AND 1=1) LIMIT $2 OFFSET $3${locking}`,
  parameters: ['A-1', '1', '0'],
  touches: locking === '' ? { read: 'public.stock' } : { lock: 'public.stock' },
  rows: [
    ['sku', 'qty'],
    ['A-1', '5'],
  ],
})
const take = (who: string, waits: Partial<Line> = {}): Line => ({
  who,
  sql: 'UPDATE "public"."stock" SET "qty" = $1 WHERE ("public"."stock"."sku" = $2 AND 1=1)',
  parameters: ['4', 'A-1'],
  touches: { lock: 'public.stock' },
  ...waits,
})

/** One after the other: the second sees what the first has left. */
const inTurn = (first: string, second: string): readonly Step[] => {
  const rows = [
    ['sku', 'qty'],
    ['A-1', '4'],
  ] as const
  return runOf({
    flows: ['alice', 'bob'],
    lines: [
      look(first),
      take(first),
      { ...look(second), rows },
      { ...take(second), parameters: ['3', 'A-1'] },
    ],
  }).steps
}

export const lostUpdate: Report = raceReport({
  name: 'take from stock',
  play: {
    flows: ['alice', 'bob'],
    lines: [
      begin('alice'),
      look('alice'),
      begin('bob'),
      look('bob'),
      take('alice'),
      take('bob', { waitsFor: 'alice', resumedAfter: 6 }),
      commit('alice'),
      commit('bob'),
    ],
  },
  run: { tables: [stock('4')] },
  serial: [
    { tables: [stock('3')], steps: inTurn('alice', 'bob') },
    { tables: [stock('3')], steps: inTurn('bob', 'alice') },
  ],
  known: [known('stock', { sku: 'text', qty: 'int4' }, [['A-1', '5']])],
})

export const lockTooLate: Report = raceReport({
  name: 'take from stock, locked',
  play: {
    flows: ['alice', 'bob'],
    lines: [
      begin('alice'),
      look('alice'),
      begin('bob'),
      look('bob'),
      look('bob', ' FOR UPDATE'),
      take('bob'),
      { ...look('alice', ' FOR UPDATE'), waitsFor: 'bob', resumedAfter: 7 },
      commit('bob'),
      take('alice'),
      commit('alice'),
    ],
  },
  run: { tables: [stock('4')] },
  serial: [{ tables: [stock('3')] }],
})

const onlyOnce: Line = {
  who: '',
  sql: 'INSERT INTO migration_lock (id) SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM migration_lock WHERE id = 1)',
  touches: { read: 'public.migration_lock', insert: 'public.migration_lock' },
}

export const oneStatement: Report = raceReport({
  name: 'only one migrates',
  play: {
    flows: ['first', 'second'],
    lines: [
      { ...onlyOnce, who: 'first', half: 'execute' },
      { ...onlyOnce, who: 'second', half: 'execute' },
      { ...onlyOnce, who: 'first', half: 'commit' },
      { ...onlyOnce, who: 'second', half: 'commit' },
    ],
  },
  run: { tables: [{ name: 'public.migration_lock', columns: ['id'], rows: [['1'], ['1']] }] },
  serial: [{ tables: [{ name: 'public.migration_lock', columns: ['id'], rows: [['1']] }] }],
})

const onCall = (who: string): Line => ({
  who,
  sql: 'SELECT name FROM doctors WHERE on_call = true',
  touches: { read: 'public.doctors' },
  rows: [['name'], ['alice'], ['bob']],
})
const goHome = (who: string): Line => ({
  who,
  sql: 'UPDATE doctors SET on_call = false WHERE name = $1',
  parameters: [who],
  touches: { lock: `public.doctors#name=${who}` },
})

export const writeSkew: Report = raceReport({
  name: 'go home',
  play: {
    flows: ['alice', 'bob'],
    lines: [
      begin('alice'),
      onCall('alice'),
      begin('bob'),
      onCall('bob'),
      goHome('bob'),
      commit('bob'),
      goHome('alice'),
      commit('alice'),
    ],
    isolation: 'repeatable read',
  },
  failure: { kind: 'invariant', message: 'nobody is on call' },
})

const pending = (who: string): Line => ({
  who,
  sql: "SELECT id FROM jobs WHERE status = 'pending' ORDER BY id LIMIT 1",
  touches: { read: 'public.jobs' },
  rows: [['id'], ['7']],
})
const claim = (who: string, rest: Partial<Line> = {}): Line => ({
  who,
  sql: "UPDATE jobs SET status = 'running', worker = $2 WHERE id = $1",
  parameters: ['7', who],
  touches: { lock: 'public.jobs' },
  ...rest,
})

export const doubleClaim: Report = raceReport({
  name: 'claim a job',
  play: {
    flows: ['w1', 'w2'],
    lines: [pending('w1'), pending('w2'), claim('w1'), claim('w2')],
  },
})

const pay = (who: string, id: string, rest: Partial<Line> = {}): Line => ({
  who,
  sql: 'UPDATE accounts SET balance = balance + $2 WHERE id = $1',
  parameters: [id, '10'],
  touches: { lock: `public.accounts#id=${id}` },
  ...rest,
})

const noWayOut = { sqlstate: '40P01', message: 'deadlock detected' }

export const deadlock: Report = raceReport({
  name: 'transfer both ways',
  play: {
    flows: ['alice', 'bob'],
    lines: [
      begin('alice'),
      pay('alice', '1'),
      begin('bob'),
      pay('bob', '2'),
      pay('alice', '2', { waitsFor: 'bob', resumedAfter: 6 }),
      pay('bob', '1', {
        waitsFor: 'alice',
        resumedAfter: 6,
        error: noWayOut,
      }),
      { who: 'bob', sql: '', action: 'victim', error: noWayOut },
      { who: 'bob', sql: 'ROLLBACK' },
      commit('alice'),
    ],
  },
  failure: { kind: 'deadlock', message: 'deadlock between alice and bob' },
  run: {
    deadlocks: 1,
    outcomes: [
      ok,
      { kind: 'threw', name: 'error', message: 'deadlock detected', sqlstate: '40P01' },
    ],
  },
})

export const crash: Report = raceReport({
  name: 'reserve, then charge',
  play: {
    flows: ['alice', 'bob'],
    lines: [
      {
        who: 'alice',
        sql: 'UPDATE credits SET held = held + 5 WHERE user_id = 1',
        touches: { lock: 'public.credits' },
      },
      { who: 'alice', sql: 'INSERT INTO charges (user_id, amount) VALUES (1, 5)', action: 'crash' },
      begin('bob'),
      {
        who: 'bob',
        sql: 'SELECT available FROM credits WHERE user_id = 1',
        touches: { read: 'public.credits' },
        rows: [['available'], ['0']] as const,
      },
      commit('bob'),
    ],
  },
  failure: { kind: 'crash', message: '5 credits are held by nobody' },
  run: { outcomes: [{ kind: 'crashed' }, ok] },
})

const [reserve, charge] = [
  {
    sql: 'UPDATE credits SET held = held + 5 WHERE user_id = 1',
    touches: { lock: 'public.credits' },
  },
  {
    sql: 'INSERT INTO charges (user_id, amount) VALUES (1, 5)',
    touches: { append: 'public.charges' },
  },
] as const

export const lostAnswer: Report = raceReport({
  name: 'charge, try again',
  play: {
    flows: ['alice', 'bob'],
    lines: [
      { who: 'alice', ...reserve },
      { who: 'alice', ...charge, action: 'lose-answer' },
      { who: 'bob', ...reserve },
    ],
  },
  failure: { kind: 'crash', message: 'charged twice' },
})

const balance = (who: string, id: string, seen: string): Line => ({
  who,
  sql: 'SELECT balance FROM accounts WHERE id = $1',
  parameters: [id],
  touches: { read: `public.accounts#id=${id}` },
  rows: [['balance'], [seen]],
})

export const readSkew: Report = raceReport({
  name: 'sum of two accounts',
  play: {
    flows: ['alice', 'bob'],
    lines: [
      begin('alice'),
      balance('alice', '1', '50'),
      begin('bob'),
      pay('bob', '1'),
      pay('bob', '2'),
      commit('bob'),
      balance('alice', '2', '60'),
      commit('alice'),
    ],
  },
})

export const staleCheck: Report = raceReport({
  name: 'order of an active user',
  play: {
    flows: ['alice', 'bob'],
    lines: [
      begin('alice'),
      {
        who: 'alice',
        sql: 'SELECT active FROM users WHERE id = 3',
        touches: { read: 'public.users' },
        rows: [['active'], ['t']],
      },
      begin('bob'),
      {
        who: 'bob',
        sql: 'UPDATE users SET active = false WHERE id = 3',
        touches: { lock: 'public.users' },
      },
      commit('bob'),
      {
        who: 'alice',
        sql: 'INSERT INTO orders (user_id) VALUES (3)',
        touches: { append: 'public.orders' },
      },
      commit('alice'),
    ],
  },
  failure: { kind: 'invariant', message: 'an inactive user has an order' },
})

const exists = (who: string): Line => ({
  who,
  sql: 'SELECT id FROM accounts WHERE email = $1',
  parameters: ['a@example.org'],
  touches: { read: 'public.accounts' },
  rows: [['id']],
})
const register = (who: string, rest: Partial<Line> = {}): Line => ({
  who,
  sql: 'INSERT INTO accounts (email) VALUES ($1)',
  parameters: ['a@example.org'],
  touches: { insert: 'public.accounts' },
  ...rest,
})
const taken = { sqlstate: '23505', message: 'duplicate key value violates unique constraint' }

export const uniqueCheck: Report = raceReport({
  name: 'register once',
  play: {
    flows: ['alice', 'bob'],
    lines: [exists('alice'), exists('bob'), register('bob'), register('alice')],
  },
})

export const duplicate: Report = raceReport({
  name: 'find or create',
  play: {
    flows: ['alice', 'bob'],
    lines: [exists('alice'), exists('bob'), register('bob'), register('alice', { error: taken })],
  },
  run: { outcomes: [{ kind: 'threw', name: 'DatabaseError', ...taken }, ok] },
  serial: [{ outcomes: [ok, ok] }],
})

const refused = {
  sqlstate: '40001',
  message: 'could not serialize access due to concurrent update',
}

export const notRetried: Report = raceReport({
  name: 'take from stock, repeatable read',
  play: {
    flows: ['alice', 'bob'],
    isolation: 'repeatable read',
    lines: [
      begin('alice'),
      look('alice'),
      begin('bob'),
      look('bob'),
      take('bob'),
      commit('bob'),
      take('alice', { error: refused }),
      { who: 'alice', sql: 'ROLLBACK' },
    ],
  },
  run: { outcomes: [{ kind: 'threw', name: 'error', ...refused }, ok] },
  serial: [{ outcomes: [ok, ok] }],
})

const advisory = (who: string, key: string, rest: Partial<Line> = {}): Line => ({
  who,
  sql: `SELECT pg_advisory_xact_lock(${key})`,
  touches: { exclusive: `advisory 0:${key}` },
  rows: [['pg_advisory_xact_lock'], ['']],
  ...rest,
})

export const oneSidedLock: Report = raceReport({
  name: 'upload, half locked',
  play: {
    flows: ['alice', 'bob'],
    lines: [
      begin('alice'),
      advisory('alice', '1'),
      count('alice'),
      begin('bob'),
      count('bob'),
      upload('bob'),
      commit('bob'),
      upload('alice'),
      commit('alice'),
    ],
  },
})

export const differentLocks: Report = raceReport({
  name: 'upload, locked apart',
  play: {
    flows: ['alice', 'bob'],
    lines: [
      begin('alice'),
      advisory('alice', '1'),
      count('alice'),
      begin('bob'),
      advisory('bob', '2'),
      count('bob'),
      upload('bob'),
      commit('bob'),
      upload('alice'),
      commit('alice'),
    ],
  },
})

export const oldSnapshot: Report = raceReport({
  name: 'upload, locked under an old snapshot',
  play: {
    flows: ['alice', 'bob'],
    isolation: 'repeatable read',
    lines: [
      begin('bob'),
      advisory('bob', '1'),
      count('bob'),
      begin('alice'),
      advisory('alice', '1', { waitsFor: 'bob', resumedAfter: 6 }),
      upload('bob'),
      commit('bob'),
      count('alice'),
      upload('alice'),
      commit('alice'),
    ],
  },
})

export const lockReleased: Report = raceReport({
  name: 'take from stock, locked without a transaction',
  play: {
    flows: ['alice', 'bob'],
    lines: [look('alice', ' FOR UPDATE'), look('bob', ' FOR UPDATE'), take('bob'), take('alice')],
  },
})

export const lockedProperly: Report = raceReport({
  name: 'take from stock, locked in time',
  play: {
    flows: ['alice', 'bob'],
    lines: [
      begin('alice'),
      look('alice', ' FOR UPDATE'),
      begin('bob'),
      { ...look('bob', ' FOR UPDATE'), waitsFor: 'alice', resumedAfter: 5 },
      take('alice'),
      commit('alice'),
      take('bob'),
      commit('bob'),
    ],
  },
})
