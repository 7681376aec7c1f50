/**
 * Every call that waits for somebody else, under every limit: it ends within the limit and a little, with a code and,
 * where there is one, the blocker. The calls are those of the public surface: see surface.ts.
 */
import { deferred, waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Driver } from '../../../src/core/driver.ts'
import type { Duration } from '../../../src/core/options/duration.ts'
import type { Wait } from '../../../src/core/options/wait.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import type { HoldfastError } from '../../../src/errors.ts'
import { createHoldfast, type Holdfast, lockKey } from '../../../src/index.ts'
import type { Schedule } from '../../../src/entries/schedule.ts'
import { inTime } from '../../support/in-time.ts'
import { pgFixture, pidOf } from '../../support/pg-fixture.ts'
import { sleepThrough, weekly } from '../schedule/schedule-room.ts'
import { kinds, surfaceOf, unclassified } from './surface.ts'

const fixture = pgFixture(
  `CREATE TABLE t (id int PRIMARY KEY, version int NOT NULL DEFAULT 1); INSERT INTO t VALUES (1);
   CREATE TABLE whole (id int)`,
  'installed',
)
const limitMs = 300
/** Of the error after the limit; two looks of up to 100 ms each are in it. */
const graceMs = 150

type Limit = 'own limit' | 'lock_timeout' | 'statement_timeout' | 'client timer' | 'pool' | 'signal'

interface How {
  readonly hf: Holdfast<pg.PoolClient>
  /** A transaction of the caller's, begun before the clock is started. */
  readonly tx: pg.PoolClient | undefined
  readonly wait?: Exclude<Wait, 'nowait'>
  readonly signal?: AbortSignal
}

interface Waiting {
  readonly limits: readonly Limit[]
  /** What it ends with; of `pool` it is POOL_STARVED, of `signal` the signal's own reason. */
  readonly code: string
  /** Whom it names, if anybody can be. */
  readonly blocker?: 'holder' | 'first'
  call(how: How): Promise<unknown>
}

const key = lockKey('grid', 1)
const body = async (): Promise<number> => await Promise.resolve(1)
const settings: readonly Limit[] = ['own limit', 'lock_timeout', 'statement_timeout']
const inside: readonly Limit[] = [...settings, 'client timer']
const outside: readonly Limit[] = [...settings, 'pool', 'signal']
const tickAt = new Date('2024-01-01T00:00:00Z')

/** Options of a call; each takes those that it knows. */
function given({ wait, signal }: How, more: object = {}): never {
  return {
    ...more,
    ...(wait === undefined ? {} : { wait }),
    ...(signal === undefined ? {} : { signal }),
  } as never
}

function schedule(how: How, guarantee: 'transactional' | 'at-least-once'): Schedule {
  return how.hf.schedule({
    name: `grid-${guarantee}`,
    ...weekly,
    overlap: 'wait',
    guarantee,
    handler: body,
    ...(how.wait === undefined ? {} : { wait: how.wait as Duration }),
  })
}

/** `busy` is an answer and no error. */
async function busyOr(outcome: Promise<unknown>): Promise<unknown> {
  const answer = (await outcome) as { outcome?: string } | readonly { outcome?: string }[]
  const { outcome: word } = (Array.isArray(answer) ? answer.at(-1) : answer) as { outcome?: string }
  throw Object.assign(new Error(word), { code: word, blockers: [] })
}

const guard: Waiting = {
  limits: outside,
  code: 'LOCK_TIMEOUT',
  blocker: 'holder',
  // A key of its own: guards of one key in one process wait for each other before they wait for the lock.
  call: (how) => how.hf.guard(lockKey('grid', 2), body, given(how)),
}
const run: Waiting = {
  limits: ['pool', 'signal'],
  code: '',
  call: (how) =>
    how.hf.transaction(
      (tx) => tx.query('SELECT pg_advisory_xact_lock($1)', [String(lockId)]),
      given(how),
    ),
}
const lockId = 'id' in key.lock ? key.lock.id : 0n

const grid: Readonly<Record<string, Waiting>> = {
  'locks.acquire': {
    limits: inside,
    code: 'LOCK_TIMEOUT',
    blocker: 'holder',
    call: (how) => how.hf.locks.acquire(how.tx as pg.PoolClient, key, given(how)),
  },
  'locks.guard': { ...guard, call: (how) => how.hf.locks.guard(key, body, given(how)) },
  guard,
  'rows.lock': {
    limits: inside,
    code: 'ROWS_TIMEOUT',
    blocker: 'holder',
    call: (how) => how.hf.rows.lock(how.tx as pg.PoolClient, 't', [1], given(how)),
  },
  'rows.lock of a table that is locked as a whole': {
    limits: inside,
    code: 'ROWS_TIMEOUT',
    blocker: 'holder',
    call: (how) =>
      how.hf.rows.lock(how.tx as pg.PoolClient, 'whole', [1], given(how, { keyColumns: ['id'] })),
  },
  'rows.lockTable': {
    limits: inside,
    code: 'ROWS_TIMEOUT',
    blocker: 'holder',
    call: (how) => how.hf.rows.lockTable(how.tx as pg.PoolClient, 'whole', 'exclusive', given(how)),
  },
  'rows.updateVersioned': {
    limits: inside,
    code: 'ROWS_TIMEOUT',
    blocker: 'holder',
    call: (how) =>
      how.hf.rows.updateVersioned(
        how.tx as pg.PoolClient,
        't',
        1,
        given(how, { version: 1, set: {} }),
      ),
  },
  'rows.withVersionCheck': {
    limits: outside,
    code: 'ROWS_TIMEOUT',
    blocker: 'holder',
    call: (how) => how.hf.rows.withVersionCheck('t', 1, given(how, { work: body, write: body })),
  },
  'rows.withVersionCheck of a table that is locked as a whole': {
    limits: settings,
    code: 'ROWS_TIMEOUT',
    blocker: 'holder',
    call: (how) =>
      how.hf.rows.withVersionCheck(
        'whole',
        1,
        given(how, { versionColumn: 'version', work: body, write: body }),
      ),
  },
  'rows.optimistic': { ...run, call: (how) => how.hf.rows.optimistic(waiting, given(how)) },
  'tx.run': { ...run, call: (how) => how.hf.tx.run(waiting, given(how)) },
  transaction: run,
  once: {
    limits: outside,
    code: 'ONCE_TIMEOUT',
    blocker: 'first',
    call: (how) => how.hf.once('grid', body, given(how)),
  },
  'once in a transaction': {
    limits: inside,
    code: 'ONCE_TIMEOUT',
    blocker: 'first',
    call: (how) => how.hf.once(how.tx as pg.PoolClient, 'grid', body, given(how)),
  },
  'leases.acquire': {
    limits: ['own limit', 'pool', 'signal'],
    code: 'LEASE_TIMEOUT',
    call: (how) => how.hf.leases.acquire('grid', given(how)),
  },
  'schedule.fire': {
    limits: ['own limit', 'pool'],
    code: 'busy',
    call: (how) => busyOr(schedule(how, 'at-least-once').fire()),
  },
  'schedule.fireAt': {
    limits: ['own limit', 'pool'],
    code: 'busy',
    call: (how) => busyOr(schedule(how, 'transactional').fireAt(tickAt)),
  },
  'schedule.runNow': {
    limits: ['own limit', 'pool'],
    code: 'busy',
    call: (how) => busyOr(schedule(how, 'transactional').runNow()),
  },
  'schedule.pause': {
    limits: ['own limit', 'lock_timeout', 'pool'],
    code: 'SCHEDULE_TIMEOUT',
    call: (how) => schedule(how, 'transactional').pause(),
  },
  // It waits as pause does, but only if the schedule is paused, and then hardly any tick is at work.
  'schedule.resume': {
    limits: ['pool'],
    code: 'SCHEDULE_TIMEOUT',
    call: (how) => schedule(how, 'transactional').resume(),
  },
}

async function waiting(tx: pg.PoolClient): Promise<void> {
  await tx.query('SELECT pg_advisory_xact_lock($1)', [String(lockId)])
}

const blockers = { holder: 0, first: 0 }
const done = deferred()
const pools: pg.Pool[] = []
const held: pg.PoolClient[] = []
const running: Promise<unknown>[] = []
let holder: pg.PoolClient

function poolWith(options: string, max = 30): pg.Pool {
  const pool = new pg.Pool({
    connectionString: fixture.database.directUrl,
    max,
    options,
    idleTimeoutMillis: 0,
  })
  pool.on('error', () => undefined)
  pools.push(pool)
  return pool
}

/** Somebody has everything that is waited for. */
beforeAll(async () => {
  holder = await fixture.pool.connect()
  await holder.query('BEGIN')
  blockers.holder = await pidOf(holder)
  await fixture.hf.locks.acquire(holder, [key, lockKey('grid', 2)])
  await holder.query('SELECT FROM t FOR UPDATE')
  await holder.query('LOCK TABLE whole IN ACCESS EXCLUSIVE MODE')
  const begun = deferred()
  running.push(
    fixture.hf.once('grid', async (tx) => {
      blockers.first = await pidOf(tx)
      begun.resolve()
      await done.promise
    }),
  )
  await begun.promise
  await fixture.hf.leases.acquire('grid', { ttl: '10 min' })
  for (const guarantee of ['transactional', 'at-least-once'] as const) {
    const atWork = deferred()
    const handler = async (): Promise<void> => {
      atWork.resolve()
      await done.promise
    }
    const name = `grid-${guarantee}`
    const working = fixture.hf.schedule({ name, ...weekly, overlap: 'wait', guarantee, handler })
    running.push(working.runNow())
    await atWork.promise
  }
  await sleepThrough(fixture.observer, 'grid-at-least-once', 1)
})

afterAll(async () => {
  done.resolve()
  await holder.query('ROLLBACK')
  holder.release()
  await Promise.all(running)
  for (const client of held) client.release()
  await fixture.hf.close()
  await Promise.all(pools.map((pool) => pool.end()))
})

/** A client with that limit, and how its calls are made. */
const clients: Readonly<Record<Limit, () => Omit<How, 'tx'> & { readonly pool: pg.Pool }>> = {
  'own limit': () => plain(fromPg, poolWith(''), { wait: `${limitMs} ms` }),
  lock_timeout: () => plain(fromPg, poolWith(`-c lock_timeout=${limitMs}`)),
  statement_timeout: () => plain(fromPg, poolWith(`-c statement_timeout=${limitMs}`)),
  'client timer': () => plain(withTimer, poolWith(''), { wait: 'inherit' }),
  pool: () => plain((pool) => fromPg(pool, { connectWithin: `${limitMs} ms` }), poolWith('', 1)),
  signal: () => plain(fromPg, poolWith('')),
}

function plain(
  driverOf: (pool: pg.Pool) => Driver<pg.PoolClient>,
  pool: pg.Pool,
  how: Partial<How> = {},
): ReturnType<(typeof clients)['pool']> {
  return { pool, hf: createHoldfast(driverOf(pool)), ...how }
}

/** The driver of a client that gives a transaction up by a timer of its own. */
function withTimer(pool: pg.Pool): Driver<pg.PoolClient> {
  const driver = fromPg(pool)
  return { ...driver, join: (tx) => ({ ...driver.join(tx), budgetMs: limitMs }) }
}

interface Ended {
  readonly error: HoldfastError
  readonly afterMs: number
}

/** Waits in one call, and says how that ended. */
async function ended({ call }: Waiting, how: How): Promise<Ended> {
  const began = performance.now()
  const error = await call(how).then(
    () => expect.unreachable('nobody was in the way'),
    (reason: unknown) => reason as HoldfastError,
  )
  return { error, afterMs: performance.now() - began }
}

function expectEnd(name: string, limit: Limit, { error, afterMs }: Ended): void {
  const { code, blocker } = grid[name] as Waiting
  inTime(afterMs, limitMs + graceMs)
  if (limit === 'signal') {
    expect(error.name).toBe('TimeoutError')
    return
  }
  expect(error.code).toBe(limit === 'pool' ? 'POOL_STARVED' : code)
  if (blocker === undefined || limit === 'pool') return
  if (error.blockers.length === 0) throw new Error(`too late: ${name} named nobody in time`)
  expect(error.blockers.map(({ pid }) => pid)).toContain(blockers[blocker])
}

describe('ends in time, with a code and its blocker', () => {
  const made = new Map<Limit, Promise<ReturnType<(typeof clients)['pool']>>>()
  /** One for all cells of a limit. Its connections are open: a new one may take longer than the grace. */
  const clientOf = async (limit: Limit): Promise<ReturnType<(typeof clients)['pool']>> => {
    const opening = async (): Promise<ReturnType<(typeof clients)['pool']>> => {
      const client = clients[limit]()
      const opened = await Promise.all(
        Array.from({ length: limit === 'pool' ? 1 : 8 }, () => client.pool.connect()),
      )
      // Nobody gives it back before the end.
      if (limit === 'pool') held.push(...opened)
      else for (const each of opened) each.release()
      return client
    }
    const known = made.get(limit) ?? opening()
    made.set(limit, known)
    return await known
  }
  const cells = (Object.keys(clients) as Limit[]).flatMap((limit) =>
    Object.keys(grid)
      .filter((name) => grid[name]?.limits.includes(limit))
      .map((name) => ({ limit, name })),
  )

  // Concurrently: they all wait for the same somebody, and none for another.
  test.concurrent.each(cells)('$name, by $limit', async ({ limit, name }) => {
    const { pool, ...client } = await clientOf(limit)
    const waits = grid[name] as Waiting
    const tx = waits.limits.includes('client timer') ? await pool.connect() : undefined
    tx?.on('error', () => undefined)
    await tx?.query('BEGIN')
    const signalled = limit === 'signal' ? { signal: AbortSignal.timeout(limitMs) } : {}
    const end = await ended(waits, { ...client, tx, ...signalled })
    await tx?.query('ROLLBACK')
    tx?.release()
    expect(end.afterMs).toBeGreaterThan(limitMs - 60)
    expectEnd(name, limit, end)
  })
})

describe('control', () => {
  test('a limit that is not passed on is missed', async () => {
    const { hf } = clients['own limit']()
    const call = (grid['guard'] as Waiting).call({ hf, tx: undefined, wait: '1 s' })
    const end = await ended({ ...guard, call: () => call }, { hf, tx: undefined })
    expect(() => expectEnd('guard', 'own limit', end)).toThrow(/^too late/)
  })

  test('a wait of one own, under a statement_timeout, has no code of ours', async () => {
    const pool = poolWith(`-c statement_timeout=${limitMs}`)
    const end = await ended(
      { ...guard, call: () => pool.query('SELECT pg_advisory_lock($1)', [String(lockId)]) },
      { hf: fixture.hf, tx: undefined },
    )
    expect(end.error.code).toBe('57014')
    expect(() => expectEnd('guard', 'statement_timeout', end)).toThrow(/57014/)
  })
})

describe('the surface', () => {
  test('has no method that nobody has thought about', async () => {
    const lease = await fixture.hf.leases.acquire('surface')
    const surface = surfaceOf(fixture.hf, lease)
    await lease.release()
    expect(unclassified(surface)).toEqual([])
    // And the table has nothing that is not there.
    expect(Object.keys(kinds).filter((name) => !surface.includes(name))).toEqual([])
  })

  test('control: a new one is found', () => {
    expect(unclassified(['guard', 'locks.brandNew'])).toEqual(['locks.brandNew'])
  })

  test('has a row in the grid for everything that waits', () => {
    const waits = Object.keys(kinds).filter((name) => kinds[name] === 'grid')
    expect(waits.filter((name) => !Object.hasOwn(grid, name))).toEqual([])
  })

  test('what waits for a connection only ends by the limit of that', async () => {
    const { pool, hf } = clients.pool()
    const taken = await pool.connect()
    onTestFinished(() => taken.release())
    const claims = hf.claims({ table: 't', lease: '30 s' })
    const calls: Readonly<Record<string, () => Promise<unknown>>> = {
      tryGuard: () => hf.tryGuard(key, body),
      'locks.selfTest': () => hf.locks.selfTest(),
      'once.forget': () => hf.once.forget(),
      'leases.tryAcquire': () => hf.leases.tryAcquire('other'),
      'leases.read': () => hf.leases.read('other'),
      'observe.locks': () => hf.observe.locks(),
      'ledger.history': () => hf.ledger.history('book', 'key'),
      'claims.check': () => claims.check(),
    }
    const ends = await Promise.all(
      Object.values(calls).map((call) => ended({ ...guard, call }, { hf, tx: undefined })),
    )
    for (const { error, afterMs } of ends) {
      expect(error.code).toBe('POOL_STARVED')
      inTime(afterMs, limitMs + graceMs)
    }
  })
})

test('nobody is left waiting', async () => {
  await waitUntil('nobody waits for a lock', async () => {
    const { rows } = await fixture.observer.query(
      `SELECT FROM pg_locks JOIN pg_stat_activity AS a USING (pid) WHERE NOT granted AND a.datname = current_database()`,
    )
    return rows.length === 0 ? true : undefined
  })
  expect(fixture.pool.waitingCount).toBe(0)
})
