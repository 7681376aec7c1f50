import { waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { ClaimsOptions } from '../../../src/entries/claims.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast, type HoldfastOptions } from '../../../src/index.ts'
import { type BreakableWire, breakableWire } from '../../support/breakable-wire.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'

/**
 * The server has done it and the answer is lost: asked again by its id, key or token, Holdfast says what
 * became of it, and it has happened once. Where nothing can tell, the outcome stays unknown.
 */
const fixture = ledgerFixture(`
  CREATE TABLE written (id text, body int);
  CREATE FUNCTION wait_at_commit() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_advisory_xact_lock_shared(hashtext(NEW.id)); RETURN NULL; END';
  CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON written DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION wait_at_commit();
  CREATE TABLE task (id text PRIMARY KEY, status text NOT NULL DEFAULT 'pending', claim_token uuid,
    lease_until timestamptz);`)

interface OnWire {
  readonly wire: BreakableWire
  readonly hf: Holdfast<pg.PoolClient>
  readonly pool: pg.Pool
}

async function onWire(options: HoldfastOptions = {}): Promise<OnWire> {
  const wire = await breakableWire(fixture.database.url)
  const pool = new pg.Pool({ connectionString: wire.url, max: 3 })
  pool.on('error', () => undefined)
  onTestFinished(async () => {
    wire.cut()
    await Promise.resolve(wire[Symbol.asyncDispose]()).catch(() => undefined)
    await pool.end()
  })
  const hf = createHoldfast(fromPg(pool), options)
  // One connection that is known to be direct, or not: nothing of its own is asked on it any more.
  for (let times = 0; times < 3; times += 1) await hf.leases.read('nobody')
  return { wire, pool, hf }
}

async function count(query: string, ...values: unknown[]): Promise<number> {
  const { rows } = await fixture.observer.query<{ n: number }>(
    `SELECT count(*)::int AS n ${query}`,
    values,
  )
  return rows[0]?.n ?? 0
}

/** Cuts the wire when the server has done it, before the answer comes through. */
async function loseAnswer(wire: BreakableWire, happened: () => Promise<number>): Promise<void> {
  await waitUntil('the server has done it', async () => (await happened()) > 0 || undefined)
  wire.cut()
}

/** Runs it, and holds the wire while its COMMIT is under way. */
async function holdingCommit<T>(
  wire: BreakableWire,
  id: string,
  run: () => Promise<T>,
): Promise<T> {
  const rival = await fixture.observer.connect()
  await rival.query('BEGIN')
  await rival.query('SELECT pg_advisory_xact_lock(hashtext($1))', [id])
  const running = run()
  running.catch(() => undefined)
  await waitUntil('COMMIT waits', async () => {
    const waiting = await count(
      `FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'COMMIT%'
       AND cardinality(pg_blocking_pids(pid)) > 0`,
    )
    return waiting > 0 || undefined
  })
  wire.hold()
  await rival.query('COMMIT')
  rival.release()
  return await running
}

interface Case {
  /** Does it with the wire held from the last statement on. */
  run(at: OnWire, id: string): Promise<unknown>
  happened(id: string): Promise<number>
  /** What must have been prepared. */
  prepare?(id: string): Promise<unknown>
  readonly answer: unknown
}

const quotaOf = (hf: Holdfast<pg.PoolClient>) =>
  hf.quota({ name: 'lost', limit: 10, per: 'lifetime' })
/** A process asks what a book is when it uses it first. */
async function usedQuota(hf: Holdfast<pg.PoolClient>): Promise<ReturnType<typeof quotaOf>> {
  const quota = quotaOf(hf)
  await quota.consume('used', 1, { operationId: fresh() })
  return quota
}
const tasks: ClaimsOptions = { table: 'task' }
const movements = (id: string): Promise<number> =>
  count('FROM holdfast.movements WHERE key = $1', id)
const written = (id: string): Promise<number> => count('FROM written WHERE id = $1', id)

const cases: Readonly<Record<string, Case>> = {
  'an operation of the ledger': {
    async run({ wire, hf }, id) {
      const quota = await usedQuota(hf)
      wire.hold()
      return await quota.consume(id, 3, { operationId: id })
    },
    happened: movements,
    answer: { ok: true, replayed: true },
  },
  'work done once': {
    run: ({ wire, hf }, id) =>
      holdingCommit(wire, id, () =>
        hf.once(id, async (tx) => {
          await tx.query('INSERT INTO written VALUES ($1, 1)', [id])
          return { stored: id }
        }),
      ),
    happened: written,
    answer: { ok: true, replayed: true, result: { stored: expect.any(String) } },
  },
  'a lease': {
    async run({ wire, hf }, id) {
      wire.hold()
      const lease = await hf.leases.acquire(id)
      const released = await lease.release()
      return { released }
    },
    happened: (id) => count('FROM holdfast.lease WHERE name = $1 AND owner IS NOT NULL', id),
    answer: { released: true },
  },
  'the release of a lease': {
    async run({ wire, hf }, id) {
      const lease = await hf.leases.acquire(id)
      wire.hold()
      return { released: await lease.release() }
    },
    happened: (id) => count('FROM holdfast.lease WHERE name = $1 AND owner IS NULL', id),
    answer: { released: true },
  },
  'a completed claim': {
    prepare: (id) => fixture.observer.query('INSERT INTO task VALUES ($1)', [id]),
    async run({ wire, hf }) {
      const claims = hf.claims(tasks)
      const all = await claims.claim(1)
      wire.hold()
      const { kept, lost } = await claims.complete(all)
      return { kept: kept.length, lost: lost.length }
    },
    happened: (id) => count(`FROM task WHERE id = $1 AND status = 'done'`, id),
    answer: { kept: 1, lost: 0 },
  },
}

describe.each(Object.entries(cases))('%s', (_, { run, happened, prepare, answer }) => {
  test('is told, and happened once', async () => {
    const id = fresh()
    await prepare?.(id)
    const at = await onWire()
    const running = run(at, id)
    await loseAnswer(at.wire, () => happened(id))
    at.wire.release()
    expect(await running).toMatchObject(answer as object)
    if (_ !== 'a lease') expect(await happened(id)).toBe(1)
  })

  test('stays unknown, however it fails afterwards, until the time is up', async () => {
    const id = fresh()
    await prepare?.(id)
    const at = await onWire({ resolveFor: '300 ms' })
    const running = run(at, id).catch((error: unknown) => error)
    await loseAnswer(at.wire, () => happened(id))
    // Whoever connects now is refused: by itself that would mean that nothing was sent.
    await at.wire[Symbol.asyncDispose]()
    expect(await running).toMatchObject({ name: 'UnknownOutcomeError' })
  })
})

test('nothing was sent: CONNECTION_UNAVAILABLE, and nothing has happened', async () => {
  const { wire, pool, hf } = await onWire({ resolveFor: '100 ms' })
  await wire[Symbol.asyncDispose]()
  // What is sent on a connection before its end is noticed may have arrived, for all that we know.
  await waitUntil('the pool has noticed', () => pool.totalCount === 0 || undefined)
  const id = fresh()
  const outcomes = [
    quotaOf(hf).consume(id, 1, { operationId: id }),
    hf.leases.acquire(id),
    hf.claims(tasks).claim(1),
    hf.once(id, () => expect.unreachable(), { retry: { budgetMs: 100 } }),
    hf.transaction(() => expect.unreachable(), { retry: { budgetMs: 100 } }),
    hf.transaction(() => expect.unreachable(), { retry: false }),
  ].map((outcome) => outcome.catch((error: unknown) => error))
  for (const outcome of outcomes) {
    expect(await outcome).toMatchObject({
      code: expect.stringMatching(/CONNECTION_(UNAVAILABLE|LOST)/),
    })
  }
  expect(await movements(id)).toBe(0)
})

test('once: lost before COMMIT, the body runs again', async () => {
  const { wire, hf } = await onWire()
  const id = fresh()
  let bodies = 0
  const answer = await hf.once(id, async (tx) => {
    bodies += 1
    await tx.query('INSERT INTO written VALUES ($1, $2)', [id, bodies])
    if (bodies === 1) wire.cut()
    return bodies
  })
  expect(answer).toMatchObject({ ok: true, replayed: false, result: 2 })
  expect([bodies, await written(id)]).toEqual([2, 1])
})

test('once: an unknown outcome of the body is the body’s own', async () => {
  const { hf } = await onWire()
  const id = fresh()
  let bodies = 0
  const inner = await onWire({ resolveFor: '1 ms' })
  const outcome = await hf
    .once(id, async () => {
      bodies += 1
      const quota = await usedQuota(inner.hf)
      inner.wire.hold()
      const consuming = quota.consume(id, 1, { operationId: id })
      await loseAnswer(inner.wire, () => movements(id))
      await consuming
    })
    .catch((error: unknown) => error)
  expect(outcome).toMatchObject({ code: 'LEDGER_OUTCOME_UNKNOWN' })
  expect(bodies).toBe(1)
})

describe('claims that leave no trace', () => {
  test.each(['deleted when done', 'released'] as const)('%s: COMMIT_UNKNOWN', async (way) => {
    const id = fresh()
    await fixture.observer.query('INSERT INTO task VALUES ($1)', [id])
    const { wire, hf } = await onWire()
    const claims = hf.claims({ ...tasks, deleteDone: true })
    const all = await claims.claim(1)
    wire.hold()
    const running = (way === 'released' ? claims.release(all) : claims.complete(all)).catch(
      (error: unknown) => error,
    )
    await loseAnswer(
      wire,
      async () => 1 - (await count(`FROM task WHERE id = $1 AND status = 'claimed'`, id)),
    )
    wire.release()
    expect(await running).toMatchObject({ code: 'COMMIT_UNKNOWN' })
    await fixture.observer.query('DELETE FROM task WHERE id = $1', [id])
  })
})

describe('a transaction of the caller’s', () => {
  test('lost before COMMIT: run again, as a whole, and committed once', async () => {
    const { wire, hf } = await onWire()
    const id = fresh()
    let bodies = 0
    await hf.transaction(async (tx) => {
      bodies += 1
      await tx.query('INSERT INTO written VALUES ($1, $2)', [id, bodies])
      if (bodies > 1) return
      wire.cut()
      await tx.query('SELECT 1')
    })
    expect([bodies, await written(id)]).toEqual([2, 1])
  })

  test('lost at COMMIT: never run again', async () => {
    const { wire, hf } = await onWire()
    const id = fresh()
    let bodies = 0
    const running = hf
      .transaction(async (tx) => {
        bodies += 1
        await tx.query('INSERT INTO written VALUES ($1, $2)', [id, bodies])
        wire.hold()
      })
      .catch((error: unknown) => error)
    await loseAnswer(wire, () => written(id))
    wire.release()
    expect(await running).toMatchObject({ code: 'COMMIT_UNKNOWN' })
    expect([bodies, await written(id)]).toEqual([1, 1])
  })
})
