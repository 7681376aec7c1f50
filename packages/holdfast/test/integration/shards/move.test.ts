import { once } from 'node:events'
import pg from 'pg'
import { expect, test } from 'vitest'
import { bucketOf } from '../../../src/core/bucket.ts'
import { isHoldfastError } from '../../../src/errors.ts'
import { createHoldfast } from '../../../src/index.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import { contentsOf, leftovers, movesFixture, ownersOf } from '../../support/moves-fixture.ts'
import { scopeIn } from '../../support/shards-fixture.ts'
import { inTime } from '../../support/in-time.ts'

const fixture = movesFixture(`
  CREATE TABLE orders (bucket smallint, id text, note text, PRIMARY KEY (bucket, id));
  CREATE TABLE strange (bucket smallint, id text PRIMARY KEY);
  CREATE TABLE seen (id text);
`)
const calls = { name: 'calls', limit: 1_000, per: 'lifetime' } as const

/** What takes long to come by itself. */
const others = [
  `INSERT INTO holdfast.checkpoint VALUES ($1, gen_random_uuid(), 1, now(), 0, 0, 0, 0)`,
  `INSERT INTO holdfast.horizon VALUES ($1, now() - interval '1 year')`,
  `INSERT INTO holdfast.schedule VALUES ($1, 'nightly', now())`,
  `INSERT INTO holdfast.tick VALUES ($1, 'nightly', now(), false, 2, 1, gen_random_uuid(), 'me', null, now())`,
]

test('everything of a bucket goes over, row by row, and goes on there', async () => {
  const { hf, pools } = fixture
  const scope = scopeIn('north')
  const bucket = bucketOf(scope)
  const quota = hf.quota(calls)
  const hold = await quota.hold(scope, 5, { operationId: fresh(), ttl: '1 h' })
  const first = fresh()
  await quota.consume(scope, 2, { operationId: first })
  const credits = hf.credits({ name: 'credits' })
  await credits.grant(scope, 100, { operationId: fresh(), expiresIn: '30 days' })
  await credits.spend(scope, 30, { operationId: fresh() })
  await hf.work({ queue: 'mails' }).enqueue({ scope, payload: { to: 'ann' } })
  await using lease = await hf.leases.acquire('one', { scope, ttl: '1 min', renew: false })
  await hf.once('event', async () => 'done', { scope })
  await pools.north.query('INSERT INTO orders VALUES ($1, $2, $3)', [bucket, 'o-1', 'with it'])
  for (const insert of others) await pools.north.query(insert, [bucket])
  const before = await contentsOf(pools.north, bucket, ['public.orders'])
  expect(Object.keys(before)).toEqual([
    'account',
    'allocation',
    'balance',
    'checkpoint',
    'credit_grant',
    'hold',
    'horizon',
    'lease',
    'lease_counter',
    'movement',
    'once',
    'operation',
    'schedule',
    'tick',
    'work',
    'public.orders',
  ])

  const [outcome] = await fixture
    .moves()
    .move({ buckets: [bucket], to: 'south', tables: ['public.orders'] })
  expect(outcome).toMatchObject({ moved: true, from: 'north', to: 'south' })
  inTime(outcome?.pausedMs as number, 5_000)
  expect(await contentsOf(pools.south, bucket, ['public.orders'])).toEqual(before)
  expect(await contentsOf(pools.north, bucket, ['public.orders'])).toEqual({})
  expect(await ownersOf(fixture, bucket)).toEqual(['south'])
  expect(await leftovers(fixture)).toEqual([])

  // What was said before still counts.
  expect(await quota.consume(scope, 2, { operationId: first })).toMatchObject({ replayed: true })
  const { holdId } = hold as { readonly holdId: string }
  expect(await quota.settle(holdId, 4)).toMatchObject({ ok: true })
  expect(await quota.peek(scope)).toMatchObject({ used: 6 })
  expect(await hf.leases.tryAcquire('one', { scope })).toBeUndefined()
  await lease.release()
  const next = await hf.leases.acquire('one', { scope, renew: false })
  expect(next.token).toBeGreaterThan(lease.token)
  const again = await hf.once('event', async () => 'twice', { scope })
  expect(again).toMatchObject({ result: 'done' })
})

test('there and back, and several at once', async () => {
  const keys = [scopeIn('north'), scopeIn('north'), scopeIn('south')]
  const buckets = keys.map(bucketOf)
  const quota = fixture.hf.quota(calls)
  for (const key of keys) await quota.consume(key, 1, { operationId: fresh() })
  for (const to of ['south', 'north'] as const) {
    const outcomes = await fixture.moves().move({ buckets, to })
    expect(outcomes.flatMap(({ buckets: moved }) => moved)).toHaveLength(to === 'south' ? 2 : 3)
    for (const bucket of buckets) expect(await ownersOf(fixture, bucket)).toEqual([to])
    for (const key of keys) await quota.consume(key, 1, { operationId: fresh() })
  }
  for (const key of keys) expect(await quota.peek(key)).toMatchObject({ used: 3 })
  expect(await fixture.moves().move({ buckets, to: 'north' })).toEqual([])
  expect(await leftovers(fixture)).toEqual([])
})

test('who follows gets every movement once, also while its bucket moves', async () => {
  const { hf, pools } = fixture
  const scope = scopeIn('north')
  const bucket = bucketOf(scope)
  const quota = hf.quota({ ...calls, name: fresh() })
  const [name, book] = [fresh(), quota.name]
  const follow = async (): Promise<unknown> =>
    await hf.ledger.follow({ name, book, batch: 3 }, async (tx, movements) => {
      for (const { id } of movements) await tx.query('INSERT INTO seen VALUES ($1)', [id])
    })
  let moving = true
  const busy = async (work: () => Promise<unknown>): Promise<void> => {
    while (moving) await work()
  }
  const working = Promise.all([
    busy(() => quota.consume(scope, 1, { operationId: fresh() })),
    busy(follow),
  ])
  for (const to of ['south', 'north', 'south'] as const) {
    expect(await fixture.moves().move({ buckets: [bucket], to })).toHaveLength(1)
  }
  moving = false
  await working
  await follow()
  const idsOf = async (pool: pg.Pool, text: string, values: string[] = []): Promise<string[]> =>
    (await pool.query<{ id: string }>(text, values)).rows.map(({ id }) => id)
  const all = await idsOf(
    pools.south,
    `SELECT m.account || '-' || m.seq || '-' || holdfast.micros(m.at) AS id
     FROM holdfast.movement m JOIN holdfast.account a ON a.bucket = m.bucket AND a.id = m.account
     WHERE a.book = $1`,
    [book],
  )
  const seen = 'SELECT id FROM seen'
  const read = [...(await idsOf(pools.north, seen)), ...(await idsOf(pools.south, seen))]
  const sorted = (ids: readonly string[]): string[] => ids.toSorted((a, b) => a.localeCompare(b))
  expect(all.length).toBeGreaterThan(10)
  expect(sorted(read)).toEqual(sorted(all))
})

test('what cannot be moved is refused, and nothing is left of it', async () => {
  const bucket = bucketOf(scopeIn('north'))
  const moves = fixture.moves()
  const refused = { code: 'SHARD_MOVE_REFUSED' }
  const tables = ['public.strange']
  await expect(moves.move({ buckets: [bucket], to: 'south', tables })).rejects.toMatchObject(
    refused,
  )
  await expect(moves.move({ buckets: [4096], to: 'south' })).rejects.toMatchObject({
    code: 'OPTION_INVALID',
  })
  await expect(moves.move({ buckets: [bucket], to: 'west' })).rejects.toMatchObject({
    code: 'OPTION_INVALID',
  })
  await expect(moves.resume(fresh())).rejects.toMatchObject({ code: 'SHARD_MOVE_UNKNOWN' })
  expect(await leftovers(fixture)).toEqual([])
})

test('a bucket is part of one move at a time', async () => {
  const bucket = bucketOf(scopeIn('north'))
  const during: unknown[] = []
  const moves = fixture.moves({
    async onProgress({ step }) {
      if (step !== 'subscribed') return
      const other = fixture
        .moves()
        .move({ buckets: [bucket, bucketOf(scopeIn('north'))], to: 'south' })
      during.push(await other.catch((error: unknown) => error))
    },
  })
  await moves.move({ buckets: [bucket], to: 'south' })
  expect(during).toMatchObject([{ code: 'SHARD_MOVE_REFUSED' }])
})

test('a password is in no error, whatever is wrong with the connection string', async () => {
  const bucket = bucketOf(scopeIn('north'))
  const { north, south } = fixture.drivers
  const { port } = fixture.server
  for (const connection of [
    `host=127.0.0.1 port=${port} dbname=nowhere user=postgres password=secret-word`,
    `host=127.0.0.1 password = 'secret-word`,
  ]) {
    const { createMoves } = await import('../../../src/shards/index.ts')
    const moves = createMoves({
      north: { driver: north, connection },
      south: { driver: south, connection },
    })
    const error = await moves
      .move({ buckets: [bucket], to: 'south' })
      .catch((each: unknown) => each)
    expect(error).toMatchObject({ code: 'SHARD_MOVE_REFUSED' })
    for (
      let at = error as Error | undefined;
      at !== undefined;
      at = at.cause as Error | undefined
    ) {
      expect(JSON.stringify([at, at.message, at.stack])).not.toContain('secret-word')
    }
  }
  expect(await leftovers(fixture)).toEqual([])
})

test('a target that cannot store the rows is found out, and the move can be undone', async () => {
  const bucket = bucketOf(scopeIn('north'))
  const { pools } = fixture
  await pools.north.query('INSERT INTO orders VALUES ($1, $2, $3)', [bucket, 'o-2', 'never'])
  await pools.south.query(`ALTER TABLE orders ADD CONSTRAINT narrow CHECK (note <> 'never')`)
  const error = await fixture
    .moves()
    .move({ buckets: [bucket], to: 'south', tables: ['public.orders'] })
    .catch((each: unknown) => each)
  expect(error).toMatchObject({ code: 'SHARD_MOVE_STALLED' })
  const { primaries } = await fixture.moves().status()
  const open = primaries.flatMap(({ moves }) => moves.filter(({ ended }) => !ended))
  expect(open.map(({ step }) => step)).toEqual(['copying', 'copying'])
  await fixture.moves().undo(open[0]?.id ?? '')
  expect(await leftovers(fixture)).toEqual([])
  expect(await ownersOf(fixture, bucket)).toEqual(['north'])
  expect(isHoldfastError(error)).toBe(true)
})

test('undoing ends a sender that has no slot yet, so that it will not make one', async () => {
  const { pools, urls } = fixture
  const bucket = bucketOf(scopeIn('north'))
  let ended: Promise<unknown> | undefined
  const moves = fixture.moves({
    async onProgress({ id, step }) {
      if (step !== 'copied') return
      const { rows } = await pools.south.query<{ slots: string }>(
        `SELECT detail ->> 'slots' AS slots FROM holdfast.shard_move WHERE id = $1`,
        [id],
      )
      // Connected as a worker that copies a table does, and so far nothing else.
      const name = rows[0]?.slots.replace('[0-9]+', '1').replaceAll(/[$^]/g, '')
      const sender = new pg.Client({
        connectionString: urls.north,
        application_name: name as string,
        replication: 'database',
      } as pg.ClientConfig)
      ended = once(sender, 'error')
      sender.on('error', () => undefined)
      await sender.connect()
      await fixture.moves().undo(id)
    },
  })
  await expect(moves.move({ buckets: [bucket], to: 'south' })).rejects.toMatchObject({
    code: 'SHARD_MOVE_OVERTAKEN',
  })
  expect(await ended).toMatchObject([{ code: '57P01' }])
})

test('an audit passes over what is on its way, and over nothing else', async () => {
  const { hf, pools, drivers } = fixture
  const scope = scopeIn('north')
  const bucket = bucketOf(scope)
  await hf.quota(calls).consume(scope, 1, { operationId: fresh() })
  const problems = async (at: 'north' | 'south'): Promise<string[]> => {
    const audit = await createHoldfast(drivers[at]).ledger.audit()
    return audit.problems.filter((each) => each.scope === scope).map(({ check }) => check)
  }
  // As a copy of several tables is in between.
  const half = async (at: 'north' | 'south'): Promise<string[]> => {
    await pools[at].query('DELETE FROM holdfast.balance WHERE bucket = $1', [bucket])
    return await problems(at)
  }
  let during: string[] | undefined
  const moves = fixture.moves({
    async onProgress({ id, step }) {
      if (step !== 'copied') return
      during = await half('south')
      await fixture.moves().undo(id)
    },
  })
  await expect(moves.move({ buckets: [bucket], to: 'south' })).rejects.toMatchObject({
    code: 'SHARD_MOVE_OVERTAKEN',
  })
  expect(during).toEqual([])
  expect(await problems('north')).toEqual([])
  expect(await half('north')).not.toEqual([])
})

test('a plan makes the primaries equal, or empties one', async () => {
  const moves = fixture.moves()
  const plan = await moves.planRebalance({ atOnce: 500 })
  expect(plan.flatMap(({ buckets }) => buckets).length).toBeLessThan(50)
  const drained = await moves.planRebalance({ drain: ['north'], atOnce: 500 })
  expect(drained.every(({ from, to }) => from === 'north' && to === 'south')).toBe(true)
  const { primaries, nobody, several } = await moves.status()
  expect(primaries.reduce((sum, { here }) => sum + here, 0)).toBe(4096)
  expect([nobody, several]).toEqual([[], []])
  expect(drained.flatMap(({ buckets }) => buckets)).toHaveLength(
    primaries.find(({ name }) => name === 'north')?.here ?? 0,
  )
})
