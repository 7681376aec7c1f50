import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { waitUntil } from '@holdfast/testkit'
import type pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { bucketOf } from '../../../src/core/bucket.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../../src/index.ts'
import { shardedDriver } from '../../../src/shards/index.ts'
import type { BreakableWire } from '../../support/breakable-wire.ts'
import { inTime } from '../../support/in-time.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import { scopeIn, setLeaving, shardsFixture } from '../../support/shards-fixture.ts'
import { wiredPool } from '../../support/wired-pool.ts'

const fixture = shardsFixture()

/** An application that reaches the north through a wire of its own. */
async function application(): Promise<{
  readonly hf: Holdfast<pg.PoolClient>
  readonly wire: BreakableWire
}> {
  const { wire, pool } = await wiredPool(fixture.urls.north, 8)
  const hf = createHoldfast(shardedDriver({ ...fixture.drivers, north: fromPg(pool) }))
  return { hf, wire }
}

function events(name: string): unknown[] {
  const heard: unknown[] = []
  const hear = (event: unknown): void => {
    heard.push(event)
  }
  subscribe(name, hear)
  onTestFinished(() => void unsubscribe(name, hear))
  return heard
}

/** A row of a process that died. */
async function strand(queue: string, scope: string): Promise<void> {
  await fixture.pools.south.query(
    `INSERT INTO holdfast.work (bucket, id, queue, scope, payload, status, run_at, enqueued_at,
       max_attempts, attempts, claim_token, lease_until)
     VALUES ($1, gen_random_uuid(), $2, $3, '"stranded"', 'claimed', now(), now(), 5, 1,
       gen_random_uuid(), now() - interval '1 s')`,
    [bucketOf(scope), queue, scope],
  )
}

const leaseMs = 1_500

/** Waits for more heartbeats that went well than there are in a lease. */
async function beaten(): Promise<void> {
  const beats = events('holdfast:claims.finished') as { verb: string; kept: number }[]
  const kept = (): number => beats.filter((one) => one.verb === 'heartbeat' && one.kept > 0).length
  await waitUntil('a lease has passed', async () => kept() > 4 || undefined)
}

test.each(['silent', 'down'] as const)(
  'S2: a worker goes on with what the south has while the north is %s',
  { timeout: 30_000 },
  async (how) => {
    const { hf, wire } = await application()
    const lost = events('holdfast:claims.lost')
    const [queue, north, south] = [fresh(), scopeIn('north'), scopeIn('south')]
    const work = hf.work<string>({ queue, lease: `${leaseMs} ms` })
    await work.enqueue({ payload: 'long', scope: south })
    await work.enqueue({ payload: 'long-north', scope: north })
    const done: string[] = []
    const ending = Promise.withResolvers<void>()
    const worker = await work.run({
      concurrency: 4,
      recoverEvery: '500 ms',
      poll: { max: '200 ms' },
      handler: async ({ payload }, { signal }) => {
        done.push(`begun ${payload}`)
        if (payload.startsWith('long')) {
          signal.addEventListener('abort', () => done.push(`aborted ${payload}`))
          await ending.promise
        }
        done.push(payload)
      },
    })
    const until = async (what: string, count = 1): Promise<void> => {
      const isDone = (): boolean => done.filter((each) => each === what).length >= count
      await waitUntil(what, async () => isDone() || undefined)
    }
    await until('begun long')
    await until('begun long-north')
    if (how === 'silent') wire.hold()
    else wire.refuse()
    const began = performance.now()
    for (let at = 1; at <= 3; at += 1) {
      await work.enqueue({ payload: 'quick', scope: south })
      await until('quick', at)
    }
    inTime(performance.now() - began, 6_000)
    await strand(queue, south)
    await until('stranded')
    // Longer than a lease: it was made longer meanwhile, and that of the north was not.
    await until('aborted long-north')
    await beaten()
    expect(done).not.toContain('aborted long')
    ending.resolve()
    await until('long')
    expect(lost).toEqual([expect.objectContaining({ count: 1 })])
    wire.release()
    await worker.stop({ within: '1 s', leaveAfter: '1 s' })
  },
)

test('S2: what a slow primary claims is for who asks next, and goes back if nobody does', async () => {
  const { hf, wire } = await application()
  const [queue, scope] = [fresh(), scopeIn('north')]
  const work = hf.work<number>({ queue, lease: `${leaseMs} ms` })
  await work.enqueue({ payload: 1, scope })
  const trouble = events('holdfast:claims.trouble')
  wire.hold()
  expect(await work.claim(4)).toEqual([])
  expect(trouble).toMatchObject([{ during: 'claim', error: { code: 'SHARD_PRIMARY_FAILED' } }])
  // Nobody waits for it any more.
  const began = performance.now()
  expect(await work.claim(4)).toEqual([])
  inTime(performance.now() - began, 500)
  wire.release()
  const [claim] = await waitUntil('it comes', async () => {
    const claims = await work.claim(4)
    return claims.length > 0 ? claims : undefined
  })
  expect(claim).toMatchObject({ attempt: 1, row: { payload: 1 } })
  await work.release(claim as NonNullable<typeof claim>)
  const isStatus = async (wanted: string, attempts: number): Promise<true | undefined> => {
    const { rowCount } = await fixture.pools.north.query(
      'SELECT FROM holdfast.work WHERE queue = $1 AND status = $2 AND attempts = $3',
      [queue, wanted, attempts],
    )
    return rowCount === 1 || undefined
  }
  wire.hold()
  expect(await work.claim(4)).toEqual([])
  wire.release()
  await waitUntil('it is claimed', () => isStatus('claimed', 1))
  await waitUntil('it was given back', () => isStatus('pending', 0))
})

test('S2: a job whose end gets no answer makes room for others when its lease is over', async () => {
  const { hf, wire } = await application()
  const [queue, north, south] = [fresh(), scopeIn('north'), scopeIn('south')]
  const work = hf.work<string>({ queue, lease: `${leaseMs} ms` })
  await work.enqueue({ payload: 'north', scope: north })
  const done: string[] = []
  const worker = await work.run({
    concurrency: 1,
    recoverEvery: false,
    poll: { max: '100 ms' },
    transactionHandler: async (_, { payload }) => {
      done.push(payload)
      if (payload === 'north') wire.hold()
    },
  })
  await waitUntil('the north is silent', async () => done.length > 0 || undefined)
  await work.enqueue({ payload: 'south', scope: south })
  await waitUntil('the south is worked on', async () => done.length > 1 || undefined)
  expect(done).toEqual(['north', 'south'])
  wire.release()
  await worker.stop({ within: '1 s', leaveAfter: '1 s' })
})

test('S7: a bucket that is stuck leaving costs other buckets nothing', async () => {
  const { hf } = fixture
  const lost = events('holdfast:claims.lost')
  const [queue, leaving, staying] = [fresh(), scopeIn('north'), scopeIn('north')]
  const work = hf.work<string>({ queue, lease: `${leaseMs} ms` })
  const begun: string[] = []
  const aborted: string[] = []
  const ending = Promise.withResolvers<void>()
  await work.enqueue({ payload: 'leaving', scope: leaving })
  await work.enqueue({ payload: 'staying', scope: staying })
  const worker = await work.run({
    concurrency: 4,
    recoverEvery: false,
    handler: async ({ payload }, { signal }) => {
      begun.push(payload)
      signal.addEventListener('abort', () => aborted.push(payload))
      await ending.promise
    },
  })
  await waitUntil('both begun', async () => begun.length === 2 || undefined)
  await setLeaving(fixture, bucketOf(leaving), 'north', true)
  await waitUntil('one is lost', async () => aborted.length > 0 || undefined)
  await beaten()
  expect(aborted).toEqual(['leaving'])
  expect(lost).toEqual([expect.objectContaining({ count: 1 })])
  await setLeaving(fixture, bucketOf(leaving), 'north', false)
  ending.resolve()
  await worker.stop()
})
