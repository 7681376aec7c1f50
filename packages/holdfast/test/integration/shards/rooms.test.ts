import { waitUntil } from '@holdfast/testkit'
import { expect, test } from 'vitest'
import { bucketOf } from '../../../src/core/bucket.ts'
import { inScope, lockKey } from '../../../src/index.ts'
import { shardedDriver } from '../../../src/shards/index.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import {
  handOver,
  type Name,
  names,
  rowsIn,
  scopeIn,
  setLeaving,
  shardsFixture,
  withoutCheck,
} from '../../support/shards-fixture.ts'

const fixture = shardsFixture('CREATE TABLE effect (what text NOT NULL)')

async function effects(what: string): Promise<Record<Name, number>> {
  const count = async (name: Name): Promise<number> =>
    (await fixture.pools[name].query('SELECT FROM effect WHERE what = $1', [what])).rows.length
  return { north: await count('north'), south: await count('south') }
}

const only = (name: Name, count: number): Record<Name, number> => ({
  north: name === 'north' ? count : 0,
  south: name === 'south' ? count : 0,
})

const insert = 'INSERT INTO effect VALUES ($1)'

test.each(names)('a guard, and what its body writes, is in the %s', async (name) => {
  const user = scopeIn(name)
  await fixture.hf.guard(inScope(lockKey('upload', user), user), async (tx) => {
    await tx.query(insert, [user])
    await fixture.hf.locks.assertHeld(tx, inScope(lockKey('upload', user), user))
  })
  expect(await effects(user)).toEqual(only(name, 1))
})

test('with a deadline, too: the transaction is checked before its body runs', async () => {
  const user = scopeIn('south')
  const key = inScope(lockKey('upload', user), user)
  await fixture.hf.guard(key, (tx) => tx.query(insert, [user]), { deadlineMs: 5_000 })
  expect(await effects(user)).toEqual(only('south', 1))
})

test('locks of two primaries are refused, and so is a transaction that says other scopes', async () => {
  const [north, south] = [scopeIn('north'), scopeIn('south')]
  const keys = [north, south].map((scope) => inScope(lockKey('pair', scope), scope))
  const split = { code: 'SHARD_SPLIT' }
  const never = (): Promise<never> => expect.unreachable()
  await expect(fixture.hf.guard(keys, never)).rejects.toMatchObject(split)
  await expect(
    fixture.hf.guard(inScope(lockKey('pair', north), north), never, { scopes: [south] }),
  ).rejects.toMatchObject(split)
  await expect(fixture.hf.transaction(never, { scopes: [north, south] })).rejects.toMatchObject(
    split,
  )
})

test('a transaction without a scope has nowhere to go', async () => {
  const nowhere = { code: 'SHARD_NO_KEY' }
  await expect(fixture.hf.transaction(() => expect.unreachable())).rejects.toMatchObject(nowhere)
  await expect(fixture.hf.observe.locks()).rejects.toMatchObject(nowhere)
  await expect(fixture.hf.ledger.audit()).rejects.toMatchObject(nowhere)
  // A row of a table that is on every primary: which one is meant, its key does not say.
  const check = { work: () => expect.unreachable(), write: () => expect.unreachable() }
  await expect(fixture.hf.rows.withVersionCheck('doc', 1, check)).rejects.toMatchObject(nowhere)
})

test('in a transaction on the wrong primary every room is refused by the server', async () => {
  const { hf } = fixture
  const [here, there] = [scopeIn('north'), scopeIn('south')]
  const quota = hf.quota({ name: 'joined', limit: 5, per: 'lifetime' })
  const work = hf.work<number>({ queue: 'joined' })
  await using lease = await hf.leases.acquire('joined', { scope: there })
  const calls: Record<string, (tx: never) => Promise<unknown>> = {
    consume: (tx) => quota.consume(tx, there, 1, { operationId: fresh() }),
    peek: (tx) => quota.peek(tx, there),
    lock: (tx) => hf.locks.acquire(tx, inScope(lockKey('joined', there), there)),
    tryLock: (tx) => hf.locks.tryAcquire(tx, inScope(lockKey('joined', there), there)),
    once: (tx) => hf.once(tx, `${there}:1`, () => 1, { scope: there }),
    fence: (tx) => lease.guard(tx),
    enqueue: (tx) => work.enqueue(tx, { payload: 1, scope: there }),
  }
  for (const [name, call] of Object.entries(calls)) {
    const refused = hf.transaction(async (tx) => await call(tx as never), { scopes: [here] })
    await expect(refused.catch((error: unknown) => [name, error])).resolves.toMatchObject([
      name,
      { code: 'SHARD_ELSEWHERE' },
    ])
  }
  // The same on the right one.
  for (const call of Object.values(calls)) {
    await hf.transaction(async (tx) => await call(tx as never), { scopes: [there] })
  }
  // And on the wrong one again, if nobody checks: it does not know the lease, but all else is done there.
  await withoutCheck(fixture, async () => {
    const { fence, ...others } = calls
    await expect(
      hf.transaction(async (tx) => await fence?.(tx as never), { scopes: [here] }),
    ).rejects.toMatchObject({ code: 'LEASE_LOST' })
    for (const call of Object.values(others)) {
      await hf.transaction(async (tx) => await call(tx as never), { scopes: [here] })
    }
  })
  expect((await rowsIn(fixture, 'balance', bucketOf(there))).north).toBe(1)
})

test('a transaction waits for a bucket that is leaving, and opens where it went', async () => {
  const user = scopeIn('north')
  const bucket = bucketOf(user)
  await fixture.hf.transaction((tx) => tx.query('SELECT 1'), { scopes: [user] })
  await setLeaving(fixture, bucket, 'north', true)
  let runs = 0
  const waiting = fixture.hf.transaction(
    async (tx) => {
      runs += 1
      await tx.query(insert, [user])
    },
    { scopes: [user] },
  )
  // Others are served meanwhile.
  await fixture.hf.transaction((tx) => tx.query('SELECT 1'), { scopes: [scopeIn('north')] })
  expect(runs).toBe(0)
  await handOver(fixture, bucket, 'south')
  await waiting
  expect(await effects(user)).toEqual(only('south', 1))
  expect(runs).toBe(1)
})

test('once: a key is remembered on its primary, and done once by all processes', async () => {
  for (const name of names) {
    const key = scopeIn(name)
    const work = (hf = fixture.hf): Promise<unknown> =>
      hf.once(key, async (tx) => {
        await tx.query(insert, [key])
        return 'done'
      })
    expect(await work()).toMatchObject({ replayed: false })
    expect(await work(fixture.create())).toMatchObject({ replayed: true, result: 'done' })
    expect(await effects(key)).toEqual(only(name, 1))
    expect(await rowsIn(fixture, 'once', bucketOf(key))).toEqual(only(name, 1))
  }
})

test('a lease lives on its primary; its holder goes on where the bucket goes', async () => {
  const scope = scopeIn('south')
  await using lease = await fixture.hf.leases.acquire('report', { scope, ttl: '30 s' })
  expect(await rowsIn(fixture, 'lease', bucketOf(scope))).toEqual(only('south', 1))
  expect(await fixture.create().leases.tryAcquire('report', { scope })).toBeUndefined()
  expect(await fixture.hf.leases.read('report', { scope })).toMatchObject({ state: 'held' })
  const { rows } = await fixture.pools.south.query(
    'SELECT * FROM holdfast.lease WHERE bucket = $1',
    [bucketOf(scope)],
  )
  const row = rows[0] as Record<string, unknown>
  await setLeaving(fixture, bucketOf(scope), 'south', true)
  const columns = Object.keys(row)
  await fixture.pools.north.query(
    `INSERT INTO holdfast.lease (${columns.join(', ')})
     VALUES (${columns.map((_, at) => `$${at + 1}`).join(', ')})`,
    Object.values(row),
  )
  await handOver(fixture, bucketOf(scope), 'north')
  expect(await lease.renew()).toBe(true)
  await fixture.hf.transaction((tx) => lease.guard(tx), { scopes: [scope] })
})

test('a leader by session stands on the primary of its scope', async () => {
  const scope = scopeIn('south')
  const driver = shardedDriver(fixture.drivers)
  const leader = fixture.hf.leader({ name: 'reconciler', scope, session: driver })
  await leader.run(async (term) => {
    await fixture.hf.transaction((tx) => term.guard(tx), { scopes: [scope] })
    await fixture.pools.south.query(insert, [scope])
  })
  expect(await rowsIn(fixture, 'lease', bucketOf(scope))).toEqual(only('south', 1))
})

test('a schedule runs on the primary of its name, once for all processes', async () => {
  for (const name of names) {
    const scope = scopeIn(name)
    const declare = (hf = fixture.hf): ReturnType<typeof hf.schedule> =>
      hf.schedule({
        name: scope,
        every: '7 days',
        guarantee: 'transactional',
        missed: { all: 10 },
        handler: async (tx) => await tx.query(insert, [scope]),
      })
    const at = new Date(0)
    await declare().fireAt(at)
    await declare(fixture.create()).fireAt(at)
    expect(await effects(scope)).toEqual(only(name, 1))
    expect(await declare().history()).toHaveLength(1)
    expect(await declare().pause()).toBe(true)
  }
})

test('a tick that failed, and was rolled back, is counted on the primary of its name', async () => {
  for (const name of names) {
    const scope = scopeIn(name)
    const schedule = fixture.hf.schedule({
      name: scope,
      every: '7 days',
      guarantee: 'transactional',
      missed: { all: 10 },
      handler: async (tx) => {
        await tx.query(insert, [scope])
        throw new Error('no')
      },
    })
    await schedule.fireAt(new Date(0))
    expect(await effects(scope)).toEqual(only(name, 0))
    expect(await schedule.history()).toMatchObject([{ attempts: 1 }])
  }
})

test('a queue over both primaries: worked on once, finished where it was, in its transaction', async () => {
  const work = fixture.hf.work<string>({ queue: 'both' })
  const scopes = Array.from({ length: 20 }, (_, at) => scopeIn(names[at % 2] as Name))
  for (const scope of scopes) await work.enqueue({ payload: scope, scope })
  await expect(
    work.enqueue(scopes.slice(0, 2).map((scope) => ({ payload: scope, scope }))),
  ).rejects.toMatchObject({ code: 'SHARD_SPLIT' })
  const worker = await work.run({
    concurrency: 4,
    transactionHandler: async (tx, { payload }) => await tx.query(insert, [payload]),
  })
  await waitUntil('all done', async () => {
    const left = await Promise.all(names.map((name) => count(name, 'both')))
    return left.every((each) => each === 0) ? true : undefined
  })
  await worker.stop()
  for (const [at, scope] of scopes.entries()) {
    expect(await effects(scope)).toEqual(only(names[at % 2] as Name, 1))
  }
})

async function count(name: Name, queue: string): Promise<number> {
  const { rows } = await fixture.pools[name].query('SELECT FROM holdfast.work WHERE queue = $1', [
    queue,
  ])
  return rows.length
}

test('claims follow a bucket that moves, and rows that are leaving are passed over', async () => {
  const work = fixture.hf.work<number>({ queue: 'moving' })
  const scope = scopeIn('north')
  const bucket = bucketOf(scope)
  await work.enqueue([1, 2].map((payload) => ({ payload, scope })))
  const [claimed] = await work.claim(1)
  await setLeaving(fixture, bucket, 'north', true)
  expect(await work.claim(5)).toEqual([])
  // What the move would do.
  const { rows } = await fixture.pools.north.query<{ row: string }>(
    'SELECT row_to_json(w)::text AS row FROM holdfast.work w WHERE bucket = $1',
    [bucket],
  )
  for (const { row } of rows) {
    await fixture.pools.south.query(
      'INSERT INTO holdfast.work SELECT * FROM json_populate_record(NULL::holdfast.work, $1::json)',
      [row],
    )
  }
  // Copied, and not handed over yet: nobody may have it.
  expect(await work.claim(5)).toEqual([])
  const completing = work.complete(claimed as NonNullable<typeof claimed>)
  await handOver(fixture, bucket, 'south')
  expect(await completing).toMatchObject({ kept: [claimed], lost: [] })
  const [rest, ...none] = await work.claim(5)
  expect(none).toEqual([])
  expect(rest).toMatchObject({ row: { payload: 2 } })
  await fixture.hf.transaction((tx) => work.complete(tx, rest as NonNullable<typeof rest>), {
    scopes: [scope],
  })
  expect(await rowsIn(fixture, 'work', bucket)).toEqual({ north: 2, south: 0 })
})

test('claims over a table without a bucket stay where they were made', async () => {
  for (const name of names) {
    await fixture.pools[name].query(`
      CREATE TABLE IF NOT EXISTS letter (id text PRIMARY KEY, status text NOT NULL DEFAULT 'pending',
        claim_token uuid, lease_until timestamptz);
      INSERT INTO letter (id) VALUES ('${name}')`)
  }
  const letters = fixture.hf.claims<{ readonly id: string }>({ table: 'letter' })
  const claims = await letters.claim(10)
  expect(claims.map(({ row }) => row.id).toSorted()).toEqual(['north', 'south'])
  expect(await letters.complete(claims)).toMatchObject({ lost: [] })
  for (const name of names) {
    const { rows } = await fixture.pools[name].query('SELECT id, status FROM letter')
    expect(rows).toEqual([{ id: name, status: 'done' }])
  }
  const made = { ...(claims[0] as (typeof claims)[0]) }
  await expect(letters.complete(made)).rejects.toMatchObject({ code: 'SHARD_NO_KEY' })
})
