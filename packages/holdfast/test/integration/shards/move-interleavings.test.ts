import { type Deferred, deferred, waitUntil } from '@holdfast/testkit'
import type pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { bucketOf } from '../../../src/core/bucket.ts'
import type { MoveProgress, Moves, MovesOptions, MoveStep } from '../../../src/shards/index.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import { leftovers, movesFixture, ownersOf } from '../../support/moves-fixture.ts'
import { scopeIn } from '../../support/shards-fixture.ts'

const fixture = movesFixture()
const calls = { name: 'calls', limit: 1_000, per: 'lifetime' } as const

/** A transaction on the north, of the caller's own. */
async function openTransaction(): Promise<pg.PoolClient> {
  const client = await fixture.pools.north.connect()
  onTestFinished(async () => {
    await client.query('ROLLBACK').catch(() => undefined)
    client.release(true)
  })
  await client.query('BEGIN')
  return client
}

/** The same, which has used one of this quota. */
async function openUse(key: string): Promise<pg.PoolClient> {
  const client = await openTransaction()
  await fixture.hf.quota(calls).consume(client, key, 1, { operationId: fresh() })
  return client
}

interface Watched {
  readonly moves: Moves
  /** Resolves when it has done this step. */
  at(step: MoveStep): Promise<void>
  /** Lets it go on from the step at which it stands. */
  goOn(): void
}

/** A move of which we hear, and which may stand still at a step. */
function watched(options: MovesOptions = {}, standAt?: MoveStep): Watched {
  const steps = new Map<MoveStep, Deferred<void>>()
  const going = deferred<void>()
  const of = (step: MoveStep): Deferred<void> => {
    const known = steps.get(step) ?? deferred<void>()
    steps.set(step, known)
    return known
  }
  const onProgress = async ({ step }: MoveProgress): Promise<void> => {
    of(step).resolve()
    if (step === standAt) await going.promise
  }
  return {
    moves: fixture.moves({ ...options, onProgress }),
    at: async (step) => await of(step).promise,
    goOn: () => going.resolve(),
  }
}

async function moveIdOf(bucket: number): Promise<string> {
  const { rows } = await fixture.pools.north.query<{ id: string }>(
    'SELECT id FROM holdfast.shard_move WHERE $1 = ANY (buckets) ORDER BY started_at DESC LIMIT 1',
    [bucket],
  )
  return rows[0]?.id ?? ''
}

/** The steps from the mark to the target having the bucket, without what is left out; what has come is enough. */
async function takeByHand(id: string, { mark }: { readonly mark: boolean }): Promise<void> {
  const { north, south } = fixture.pools
  if (mark) await north.query('SELECT holdfast.mark_leaving($1)', [id])
  else await north.query(`UPDATE holdfast.shard_move SET step = 'leaving' WHERE id = $1`, [id])
  await north.query('SELECT holdfast.write_end($1)', [id])
  await waitUntil('the last row has arrived', async () => {
    const { rowCount } = await south.query('SELECT FROM holdfast.shard_end WHERE move = $1', [id])
    return rowCount === 1 || undefined
  })
  await south.query('SELECT holdfast.expect_rows($1, holdfast.count_move($1))', [id])
  await south.query(`SELECT holdfast.take_move($1, '{1}')`, [id])
}

test('a transaction that is open across the mark is waited for, and goes along', async () => {
  const key = scopeIn('north')
  const quota = fixture.hf.quota(calls)
  await quota.consume(key, 1, { operationId: fresh() })
  const { moves, at, goOn } = watched({}, 'copied')
  const moving = moves.move({ buckets: [bucketOf(key)], to: 'south' })
  await at('copied')
  const client = await openUse(key)
  const idle = await openTransaction()
  goOn()
  await at('marked')
  // Whoever has begun may end; what they begin anew is refused, and new work waits.
  let waits = true
  const later = quota.consume(key, 1, { operationId: fresh() }).finally(() => {
    waits = false
  })
  await expect(quota.consume(idle, key, 1, { operationId: fresh() })).rejects.toMatchObject({
    code: 'SHARD_MOVING',
  })
  await idle.query('ROLLBACK')
  expect(waits).toBe(true)
  expect(await ownersOf(fixture, bucketOf(key))).toEqual(['north'])
  await client.query('COMMIT')
  await moving
  await later
  expect(await ownersOf(fixture, bucketOf(key))).toEqual(['south'])
  expect(await quota.peek(key)).toMatchObject({ used: 3 })
})

test('control: without waiting for it, what it has committed is lost', async () => {
  const key = scopeIn('north')
  const quota = fixture.hf.quota(calls)
  await quota.consume(key, 1, { operationId: fresh() })
  const { moves, at } = watched({}, 'copied')
  void moves.move({ buckets: [bucketOf(key)], to: 'south' })
  await at('copied')
  const client = await openUse(key)
  const id = await moveIdOf(bucketOf(key))
  await takeByHand(id, { mark: true })
  await client.query('COMMIT')
  await fixture.moves().resume(id)
  expect(await quota.peek(key)).toMatchObject({ used: 1 })
})

test('control: without the mark, what is done meanwhile is lost', async () => {
  const key = scopeIn('north')
  const quota = fixture.hf.quota(calls)
  await quota.consume(key, 1, { operationId: fresh() })
  const { moves, at } = watched({}, 'copied')
  void moves.move({ buckets: [bucketOf(key)], to: 'south' })
  await at('copied')
  const id = await moveIdOf(bucketOf(key))
  await takeByHand(id, { mark: false })
  expect(await quota.consume(key, 1, { operationId: fresh() })).toMatchObject({ ok: true })
  expect(await ownersOf(fixture, bucketOf(key))).toEqual(['north', 'south'])
  await fixture.moves().resume(id)
  expect(await quota.peek(key)).toMatchObject({ used: 1 })
})

test('a transaction that was prepared across the mark is waited for as well', async () => {
  const key = scopeIn('north')
  const quota = fixture.hf.quota(calls)
  const { moves, at, goOn } = watched({}, 'copied')
  const moving = moves.move({ buckets: [bucketOf(key)], to: 'south' })
  await at('copied')
  const client = await openUse(key)
  goOn()
  await at('marked')
  await client.query(`PREPARE TRANSACTION 'across'`)
  await fixture.pools.north.query('SELECT')
  expect(await ownersOf(fixture, bucketOf(key))).toEqual(['north'])
  await fixture.pools.north.query(`COMMIT PREPARED 'across'`)
  await moving
  expect(await quota.peek(key)).toMatchObject({ used: 1 })
})

test('who does not end in time is named, and the bucket stays', async () => {
  const key = scopeIn('north')
  const quota = fixture.hf.quota(calls)
  const { moves, at, goOn } = watched({ pause: '300 ms', wait: '1 s' }, 'copied')
  const moving = moves.move({ buckets: [bucketOf(key)], to: 'south' })
  const ending = moving.catch((error: unknown) => error)
  await at('copied')
  const client = await openUse(key)
  goOn()
  expect(await ending).toMatchObject({
    code: 'SHARD_MOVE_BLOCKED',
    blockers: [{ state: 'idle in transaction' }],
  })
  await client.query('COMMIT')
  expect(await quota.consume(key, 1, { operationId: fresh() })).toMatchObject({ ok: true })
  expect(await quota.peek(key)).toMatchObject({ used: 2 })
  expect(await ownersOf(fixture, bucketOf(key))).toEqual(['north'])
  expect(await leftovers(fixture)).toEqual([])
})

test('who is there for long is waited for before anybody has to wait', async () => {
  const key = scopeIn('north')
  const quota = fixture.hf.quota(calls)
  const { moves, at, goOn } = watched({ pause: '400 ms', wait: '20 s' }, 'waiting')
  const client = await openTransaction()
  const moving = moves.move({ buckets: [bucketOf(key)], to: 'south' })
  await at('waiting')
  expect(await quota.consume(key, 1, { operationId: fresh() })).toMatchObject({ ok: true })
  goOn()
  await client.query('COMMIT')
  expect(await moving).toMatchObject([{ moved: true }])
})

test('who writes for longer than we wait is named before anything is copied', async () => {
  const key = scopeIn('north')
  const client = await openUse(key)
  const moving = fixture.moves({ wait: '500 ms' }).move({ buckets: [bucketOf(key)], to: 'south' })
  await expect(moving).rejects.toMatchObject({
    code: 'SHARD_MOVE_BLOCKED',
    blockers: [{ state: 'idle in transaction' }],
  })
  await client.query('COMMIT')
  expect(await fixture.hf.quota(calls).peek(key)).toMatchObject({ used: 1 })
  expect(await leftovers(fixture)).toEqual([])
})

test.each(['subscribed', 'copied', 'arrived'] as const)(
  'a mover that stands still when it has %s and goes on after others undid its move does no harm',
  async (step) => {
    const key = scopeIn('north')
    const { moves, at, goOn } = watched({}, step)
    const moving = moves.move({ buckets: [bucketOf(key)], to: 'south' })
    const ending = moving.catch((error: unknown) => error)
    await at(step)
    await fixture.moves().undo(await moveIdOf(bucketOf(key)))
    goOn()
    expect(await ending).toMatchObject({ code: 'SHARD_MOVE_OVERTAKEN' })
    expect(await ownersOf(fixture, bucketOf(key))).toEqual(['north'])
    const consumed = fixture.hf.quota(calls).consume(key, 1, { operationId: fresh() })
    expect(await consumed).toMatchObject({ ok: true })
    expect(await leftovers(fixture)).toEqual([])
  },
)

test('what fell due is booked once, by the server that has the bucket', async () => {
  const key = scopeIn('north')
  const quota = fixture.hf.quota(calls)
  const { north, south } = fixture.pools
  await quota.hold(key, 5, { operationId: fresh(), ttl: '1 ms' })
  const sweeps = async (): Promise<string[]> => {
    const all: string[] = []
    for (const pool of [north, south]) {
      const { rows } = await pool.query<{ told: string }>('SELECT holdfast.sweep(100) AS told')
      all.push(rows[0]?.told ?? '')
    }
    return all
  }
  const { moves, at, goOn } = watched({}, 'arrived')
  const moving = moves.move({ buckets: [bucketOf(key)], to: 'south' })
  await at('arrived')
  expect(await sweeps()).toEqual(['0,0', '0,0'])
  goOn()
  await moving
  expect(await sweeps()).toEqual(['0,0', '1,0'])
  expect(await quota.peek(key)).toMatchObject({ held: 0 })
})
