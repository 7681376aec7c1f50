import { type AddressInfo, connect, createServer } from 'node:net'
import { once } from 'node:events'
import { deferred, startPgBouncer, startPostgres, waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import postgres from 'postgres'
import { beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { fromPostgresJs } from '../../../src/drivers/postgres-js.ts'
import { createHoldfast, type Holdfast } from '../../../src/index.ts'
import type { LeaderOptions, Term } from '../../../src/entries/leases.ts'
import { leaseName } from '../../../src/leases/lease-name.ts'
import { leaderKey } from '../../../src/leases/seat.ts'
import { migrate } from '../../../src/schema/index.ts'
import { breakableWire } from '../../support/breakable-wire.ts'
import { Candidate } from '../../support/candidate.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { callerTransaction, eventsOn } from '../../support/pg-fixture.ts'

/** Whatever happens to a leader, never two that can write. */
const table = 'CREATE TABLE written (seq bigserial PRIMARY KEY, lease text, token bigint)'
const fixture = ledgerFixture(table)
// A process that is stopped inside a guarded transaction keeps the others waiting for no longer.
beforeAll(async () => {
  await fixture.observer.query(`DO $$ BEGIN
    EXECUTE format('ALTER DATABASE %I SET idle_in_transaction_session_timeout = 400', current_database());
  END $$`)
})

/** Writes of a leader that came after one of its successor's. */
async function staleWrites(name: string, observer: pg.Pool = fixture.observer): Promise<number> {
  const { rows } = await observer.query<{ stale: number; all: number }>(
    `SELECT count(*) FILTER (WHERE token < before)::int AS stale, count(*)::int AS all FROM (
       SELECT token, max(token) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) AS before
       FROM written WHERE lease = $1
     ) w`,
    [name],
  )
  expect(rows[0]?.all).toBeGreaterThan(0)
  return rows[0]?.stale as number
}

const untilWritten = async (name: string, observer: pg.Pool = fixture.observer): Promise<void> => {
  await waitUntil('somebody writes', async () => {
    const { rows } = await observer.query('SELECT FROM written WHERE lease = $1', [name])
    return rows.length > 0 || undefined
  })
}

/** A candidate in this process. */
interface Standing {
  readonly terms: Term<pg.PoolClient>[]
  stop(): Promise<void>
  readonly done: Promise<void>
}

function stand(hf: Holdfast<pg.PoolClient>, options: LeaderOptions): Standing {
  const stop = new AbortController()
  const terms: Term<pg.PoolClient>[] = []
  const leader = hf.leader(options)
  const done = leader.run(
    async (term) => {
      terms.push(term)
      expect(leader.term).toBe(term)
      if (!term.signal.aborted) await once(term.signal, 'abort')
    },
    { signal: stop.signal },
  )
  done.catch(() => undefined)
  const end = async (): Promise<void> => {
    stop.abort()
    await done
  }
  onTestFinished(async () => await end().catch(() => undefined))
  return { terms, stop: end, done }
}

const elected = async ({ terms }: Standing, nth = 1): Promise<Term<pg.PoolClient>> =>
  await waitUntil('it leads', () => terms[nth - 1])

const directPool = (url = fixture.database.directUrl, options: pg.PoolConfig = {}): pg.Pool => {
  const pool = new pg.Pool({ connectionString: url, max: 2, ...options })
  pool.on('error', () => undefined)
  onTestFinished(async () => await pool.end())
  return pool
}

const modes = ['lease', 'session'] as const
type Mode = (typeof modes)[number]
const optionsOf = (mode: Mode, name: string, more: Partial<LeaderOptions> = {}): LeaderOptions => ({
  name,
  retryEvery: 20,
  ...(mode === 'session' ? { session: fromPg(directPool()) } : {}),
  ...more,
})

describe.each(modes)('by %s', (mode) => {
  test('one of three leads; when it resigns the next does, with a higher token', async () => {
    const name = fresh()
    const all = [1, 2, 3].map(() => stand(fixture.hf, optionsOf(mode, name)))
    const tokens: bigint[] = []
    while (all.length > 0) {
      const leading = await waitUntil('one leads', () =>
        all.find(({ terms }) => terms.some(({ signal }) => !signal.aborted)),
      )
      expect(all.filter(({ terms }) => terms.length > 0)).toEqual([leading])
      tokens.push(leading.terms[0]?.token as bigint)
      await leading.stop()
      all.splice(all.indexOf(leading), 1)
    }
    expect(tokens).toEqual(tokens.toSorted((a, b) => Number(a - b)))
    expect(new Set(tokens).size).toBe(3)
  })

  test('its end is the end: what it returns, throws, and the stop it was told', async () => {
    const name = fresh()
    await fixture.hf.leader(optionsOf(mode, name)).run(async () => undefined)
    const mine = new Error('mine')
    const throwing = fixture.hf.leader(optionsOf(mode, name)).run(async () => {
      throw mine
    })
    await expect(throwing).rejects.toBe(mine)
    expect(await fixture.hf.leases.read(name)).toMatchObject({ state: 'free' })
    const stop = new AbortController()
    const stopped = fixture.hf.leader(optionsOf(mode, name)).run(
      async (term) => {
        stop.abort(mine)
        term.signal.throwIfAborted()
      },
      { signal: stop.signal },
    )
    await stopped
    expect(await fixture.hf.leases.read(name)).toMatchObject({ state: 'free' })
  })

  test('told to stop, a body that does not heed it is left, and somebody else leads', async () => {
    const name = fresh()
    const stop = new AbortController()
    const open = deferred<void>()
    const led = deferred<Term<pg.PoolClient>>()
    const first = fixture.hf.leader(optionsOf(mode, name, { ttl: 600 })).run(
      async (term) => {
        led.resolve(term)
        await open.promise
      },
      { signal: stop.signal, leaveAfter: 20 },
    )
    const term = await led.promise
    const second = stand(fixture.hf, optionsOf(mode, name))
    stop.abort()
    await expect(first).rejects.toMatchObject({ code: 'LEASE_TERM_LEFT' })
    expect(term.signal.aborted).toBe(true)
    expect((await elected(second)).token).toBeGreaterThan(term.token)
    const tx = await callerTransaction(fixture)
    await expect(term.guard(tx)).rejects.toMatchObject({ code: 'LEASE_LOST' })
    open.resolve()
    await second.stop()
  })

  test('the process is killed: somebody else leads, and no stale write', async () => {
    const name = fresh()
    const { url, directUrl } = fixture.database
    const task = {
      url,
      sessionUrl: mode === 'session' ? directUrl : undefined,
      name,
      ttlMs: 1_000,
      retryMs: 50,
      guarded: true,
    }
    await using first = new Candidate(task)
    const { token } = await first.elected()
    await using second = new Candidate(task)
    await untilWritten(name)
    first.signal('SIGKILL')
    await second.elected(token)
    await second.stop()
    expect(await staleWrites(name)).toBe(0)
  })
})

describe('the process is paused past its ttl', () => {
  const task = {
    get url() {
      return fixture.database.url
    },
    sessionUrl: undefined,
    ttlMs: 600,
    retryMs: 20,
  }
  const paused = async (name: string, guarded: boolean): Promise<number> => {
    const { url } = task
    await using first = new Candidate({ ...task, url, name, guarded })
    const { token } = await first.elected()
    await using second = new Candidate({ ...task, url, name, guarded })
    await untilWritten(name)
    first.signal('SIGSTOP')
    const next = await second.elected(token)
    await waitUntil('the next one writes', async () => {
      const { rows } = await fixture.observer.query(
        'SELECT FROM written WHERE lease = $1 AND token = $2',
        [name, String(next.token)],
      )
      return rows.length > 0 || undefined
    })
    first.signal('SIGCONT')
    if (guarded) await first.deposed()
    else {
      await waitUntil('the first one writes again', async () => {
        return (await staleWrites(name)) > 0 || undefined
      })
    }
    return await staleWrites(name)
  }

  test('by lease: somebody else leads, and it cannot write any more', async () => {
    expect(await paused(fresh(), true)).toBe(0)
  })

  test('control: without the guard it writes after its successor', async () => {
    expect(await paused(fresh(), false)).toBeGreaterThan(0)
  })

  test('by session: nobody else leads as long as its connection lives; then it steps down', async () => {
    const name = fresh()
    const { url, directUrl } = fixture.database
    const asked = { ...task, url, sessionUrl: directUrl, name, guarded: true }
    await using first = new Candidate(asked)
    const { token } = await first.elected()
    await using second = new Candidate(asked)
    await untilWritten(name)
    first.signal('SIGSTOP')
    await waitUntil('the lease has expired', async () => {
      return (await fixture.hf.leases.read(name))?.state === 'free' || undefined
    })
    expect(second.term).toBeUndefined()
    first.signal('SIGCONT')
    await waitUntil('somebody leads again', () => {
      return (
        [first, second].some((one) => one.leads && (one.term?.token ?? 0n) > token) || undefined
      )
    })
    expect(await staleWrites(name)).toBe(0)
  })
})

describe('the connection', () => {
  test('by session, the backend is killed: it knows at once, somebody else leads', async () => {
    const name = fresh()
    const first = stand(fixture.hf, optionsOf('session', name, { ttl: '1 h' }))
    const term = await elected(first)
    const second = stand(fixture.hf, optionsOf('session', name, { ttl: '1 h' }))
    const { rows } = await fixture.observer.query<{ pid: number }>(
      `SELECT pg_terminate_backend(pid) AS gone, pid FROM pg_locks
       WHERE locktype = 'advisory' AND granted
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
         AND classid::bigint << 32 | objid::bigint = $1`,
      [String(leaderKey(leaseName(name)).lock.id)],
    )
    expect(rows).toHaveLength(1)
    await waitUntil('it knows', () => term.signal.aborted || undefined)
    expect(term.signal.reason).toMatchObject({
      code: 'LEASE_LOST',
      details: { reason: 'connection' },
    })
    const next = await waitUntil('somebody leads', () =>
      [...first.terms.slice(1), ...second.terms].at(0),
    )
    expect(next.token).toBeGreaterThan(term.token)
    await expect(fixture.hf.transaction(async (tx) => await term.guard(tx))).rejects.toMatchObject({
      code: 'LEASE_LOST',
    })
  })

  test('by session, the wire is cut and the server does not know: it steps down in time', async () => {
    const name = fresh()
    const wire = await breakableWire(fixture.database.directUrl)
    onTestFinished(async () => await wire[Symbol.asyncDispose]())
    const cutOff = fromPg(directPool(wire.url))
    const first = stand(fixture.hf, optionsOf('session', name, { session: cutOff, ttl: 1_000 }))
    const term = await elected(first)
    const second = stand(fixture.hf, optionsOf('session', name, { ttl: 1_000 }))
    wire.hold()
    await once(term.signal, 'abort')
    expect(term.signal.reason).toMatchObject({ details: { reason: 'deadline' } })
    // It closes its session, so the lock is free as soon as the server hears of that.
    wire.cut()
    wire.release()
    const next = await waitUntil('somebody leads', () =>
      [...first.terms.slice(1), ...second.terms].at(0),
    )
    expect(next.token).toBeGreaterThan(term.token)
  })

  test('by lease, every backend is killed once: it goes on leading', async () => {
    const name = fresh()
    const first = stand(fixture.hf, optionsOf('lease', name, { ttl: 6_000 }))
    const term = await elected(first)
    const { expiresAt } = (await fixture.hf.leases.read(name)) ?? {}
    await fixture.observer.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = 'suite'`,
    )
    await waitUntil('it was renewed', async () => {
      const now = await fixture.hf.leases.read(name).catch(() => undefined)
      return Number(now?.expiresAt ?? 0) > Number(expiresAt) || undefined
    })
    expect(term.signal.aborted).toBe(false)
  })

  test('by lease, through a PgBouncer that is restarted: it goes on, or steps down in time', async () => {
    await using server = await startPostgres()
    const observer = directPool(server.url())
    await migrate(fromPg(observer))
    await observer.query(table)
    let pooler = await startPgBouncer(server)
    const switchboard = createServer((near) => {
      const far = connect({ host: '127.0.0.1', port: pooler.port })
      near.pipe(far).pipe(near)
      near.on('error', () => far.destroy())
      far.on('error', () => near.destroy())
    }).listen(0, '127.0.0.1')
    await once(switchboard, 'listening')
    onTestFinished(() => void switchboard.close())
    const { port } = switchboard.address() as AddressInfo
    const url = `postgres://postgres@127.0.0.1:${port}/postgres`
    const name = fresh()
    const task = { url, sessionUrl: undefined, name, ttlMs: 1_500, retryMs: 50, guarded: true }
    await using first = new Candidate(task)
    await first.elected()
    await using second = new Candidate(task)
    for (let restart = 0; restart < 2; restart += 1) {
      const { token } = [first.term, second.term].reduce((a, b) =>
        (a?.token ?? 0n) > (b?.token ?? 0n) ? a : b,
      ) as { token: bigint }
      await pooler.stop()
      const { rows: last } = await observer.query<{ seq: string }>(
        'SELECT coalesce(max(seq), 0) AS seq FROM written',
      )
      const before = last[0]?.seq
      // The second time it stays away for longer than the lease lives.
      if (restart === 1) await Promise.all([first.deposed(), second.deposed()])
      pooler = await startPgBouncer(server)
      await waitUntil(
        'somebody leads and writes',
        async () => {
          const { rows } = await observer.query(
            'SELECT FROM written WHERE lease = $1 AND token >= $2 AND seq > $3',
            [name, String(token), before],
          )
          return rows.length > 0 || undefined
        },
        { limitMs: 25_000 },
      )
    }
    await first.stop()
    await second.stop()
    expect(await staleWrites(name, observer)).toBe(0)
    await pooler.stop()
  })
})

describe('a session', () => {
  test('through a pooler is refused, and nothing is locked', async () => {
    const name = fresh()
    const url = new URL(inject('pgbouncerUrl'))
    url.pathname = new URL(fixture.database.directUrl).pathname
    for (const session of [fromPg(directPool(url.href)), fromPostgresJs(postgresAt(url.href))]) {
      const refused = createHoldfast(fromPg(directPool(url.href)))
        .leader({ name, session })
        .run(async () => undefined)
      await expect(refused).rejects.toMatchObject({ code: 'LEASE_SESSION_POOLED' })
    }
    const { rows } = await fixture.observer.query(
      `SELECT FROM pg_locks
       WHERE locktype = 'advisory' AND classid::bigint << 32 | objid::bigint = $1`,
      [String(leaderKey(leaseName(name)).lock.id)],
    )
    expect(rows).toEqual([])
    expect(await fixture.hf.leases.read(name)).toBeUndefined()
  })

  test.each(['pg', 'postgres.js'])('of %s is closed in the end, with its lock', async (client) => {
    const name = fresh()
    const session =
      client === 'pg'
        ? fromPg(directPool(undefined, { application_name: name }))
        : fromPostgresJs(postgresAt(fixture.database.directUrl, name))
    const sessions = async (): Promise<number> =>
      (
        await fixture.observer.query('SELECT FROM pg_stat_activity WHERE application_name = $1', [
          name,
        ])
      ).rows.length
    const leading = deferred<Term<pg.PoolClient>>()
    const leave = deferred()
    const running = fixture.hf.leader({ name, session }).run(async (term) => {
      leading.resolve(term)
      await leave.promise
    })
    await leading.promise
    expect(await sessions()).toBe(1)
    leave.resolve()
    await running
    await waitUntil('the session is closed', async () => (await sessions()) === 0 || undefined)
  })

  test('never takes its lock twice, and says so if somebody else did', async () => {
    const name = fresh()
    const id = String(leaderKey(leaseName(name)).lock.id)
    const client = await directPool().connect()
    try {
      const ask = async (verb: string, ...args: unknown[]): Promise<string> =>
        (
          await client.query<{ answer: string }>(
            `SELECT holdfast.${verb}(${args.map((_, at) => `$${at + 1}`).join(', ')}) AS answer`,
            args,
          )
        ).rows[0]?.answer as string
      const owner = fresh()
      const acquire = async (): Promise<string> =>
        await ask('acquire_lease', name, name, owner, 60_000, 0, null, id)
      const token = (await acquire()).split(',')[0]
      expect((await acquire()).split(',')[0]).toBe(token)
      expect(await ask('renew_lease', name, name, owner, token, id)).toBe('held')
      expect(await ask('release_lease', name, name, owner, token, id)).toBe('released')
      expect(await ask('release_lease', name, name, owner, token, id)).toBe('unlocked')
      expect(await ask('renew_lease', name, name, owner, token, id)).toBe('unlocked')
      // Control: stacked by hand, one release is not enough, and it is told.
      await acquire()
      await client.query('SELECT pg_advisory_lock($1)', [id])
      expect(await ask('release_lease', name, name, owner, token, id)).toBe('stacked')
    } finally {
      client.release(true)
    }
  })

  test('S5: a candidate by session waits for a leader by lease, and takes over when that one resigns', async () => {
    const name = fresh()
    const byLease = stand(fixture.hf, optionsOf('lease', name, { ttl: '1 h' }))
    const before = await elected(byLease)
    const bySession = stand(fixture.hf, optionsOf('session', name, { ttl: '1 h' }))
    await waitUntil('the candidate has its lock, and its answer', async () => {
      const { rows } = await fixture.observer.query(
        `SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid)
         WHERE l.locktype = 'advisory' AND l.granted AND a.state = 'idle'
           AND l.classid::bigint << 32 | l.objid::bigint = $1`,
        [String(leaderKey(leaseName(name)).lock.id)],
      )
      return rows.length > 0 || undefined
    })
    expect(await fixture.hf.leases.read(name)).toMatchObject({ token: before.token })
    await fixture.hf.transaction(async (tx) => await before.guard(tx))
    expect([before.signal.aborted, bySession.terms.length]).toEqual([false, 0])
    await byLease.stop()
    const now = await elected(bySession)
    expect(now.token).toBeGreaterThan(before.token)
  })

  test('S5: a candidate by lease waits for a leader by session', async () => {
    const name = fresh()
    const bySession = stand(fixture.hf, optionsOf('session', name, { ttl: '1 h' }))
    const before = await elected(bySession)
    expect(await fixture.hf.leases.tryAcquire(name)).toBeUndefined()
    const byLease = stand(fixture.hf, optionsOf('lease', name, { ttl: '1 h' }))
    await bySession.stop()
    expect((await elected(byLease)).token).toBeGreaterThan(before.token)
  })

  test('S5: a leader by lease that is gone is waited for until its lease is over', async () => {
    const name = fresh()
    await fixture.hf.leases.acquire(name, { ttl: 400, renew: false })
    const gone = await fixture.hf.leases.read(name)
    const bySession = stand(fixture.hf, optionsOf('session', name))
    await elected(bySession)
    const now = await fixture.hf.leases.read(name)
    expect(Number(now?.acquiredAt)).toBeGreaterThanOrEqual(Number(gone?.expiresAt))
  })
})

test('an outage during the campaign is an event, and the candidate goes on', async () => {
  const trouble = eventsOn<{ during: string }>('holdfast:leader.trouble')
  const wire = await breakableWire(fixture.database.url)
  onTestFinished(async () => await wire[Symbol.asyncDispose]())
  const pool = directPool(wire.url, { connectionTimeoutMillis: 200 })
  const name = fresh()
  await using held = await fixture.hf.leases.acquire(name)
  const candidate = stand(createHoldfast(fromPg(pool)), { name, retryEvery: 20 })
  wire.hold()
  await waitUntil('it has trouble', () => {
    wire.cut()
    return trouble.length > 0 || undefined
  })
  expect(trouble[0]).toMatchObject({ during: 'campaign' })
  wire.release()
  await held.release()
  await elected(candidate)
})

function postgresAt(url: string, name = 'session'): postgres.Sql {
  const sql = postgres(url, { max: 2, prepare: false, connection: { application_name: name } })
  onTestFinished(async () => await sql.end({ timeout: 5 }))
  return sql
}
