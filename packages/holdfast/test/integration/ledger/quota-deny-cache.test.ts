import { deferred } from '@holdfast/testkit'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast } from '../../../src/index.ts'
import type { Accepted } from '../../../src/ledger/verdict.ts'
import type { DenyCacheOptions, Quota } from '../../../src/quota/index.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { callerTransaction } from '../../support/pg-fixture.ts'

const fixture = ledgerFixture()
afterEach(() => {
  vi.restoreAllMocks()
})

/** An id that was never used before, and that says so. */
const fromFreshId = (): { operationId: string; freshId: true } => ({
  operationId: fresh(),
  freshId: true,
})

interface Process {
  readonly quota: Quota<unknown, number>
  /** How often the database was asked so far. */
  asked(): number
  /** Answers from now on wait for this. Resolves when the database has given the next one. */
  delay(until: Promise<void>): Promise<void>
}

/** A quota of 5 as another process would have it, and a look at what it sends. */
function startProcess(
  name: string,
  denyCache: DenyCacheOptions | undefined,
  options: { limit?: (key: string) => number; rate?: '1 h' } = {},
): Process {
  const driver = fromPg(fixture.pool)
  const { alone } = driver
  let asked = 0
  let gate: Promise<void> | undefined
  let decided = (): void => undefined
  const watched = {
    ...driver,
    alone: {
      ...alone,
      async query(...args: Parameters<typeof alone.query>) {
        asked += 1
        const rows = await alone.query(...args)
        decided()
        await gate
        return rows
      },
    },
  } as typeof driver
  const declared = {
    name,
    limit: options.limit ?? 5,
    ...(options.rate === undefined ? ({ per: 'lifetime' } as const) : { rate: options.rate }),
    ...(denyCache === undefined ? {} : { denyCache }),
  }
  return {
    quota: createHoldfast(watched).quota(declared) as Quota<unknown, number>,
    asked: () => asked,
    async delay(until) {
      gate = until
      await new Promise<void>((resolve) => {
        decided = resolve
      })
    },
  }
}

const cached: DenyCacheOptions = { forMs: 3_600_000 }

/** Uses up the limit and is refused once. */
async function refusedOnce(
  name: string,
  cache = cached,
  cost = 1,
): Promise<Process & { key: string }> {
  const started = startProcess(name, cache)
  const key = fresh()
  await started.quota.consume(key, 5, fromFreshId())
  expect(await started.quota.consume(key, cost, fromFreshId())).toMatchObject({ ok: false })
  return { ...started, key }
}

describe('a remembered refusal', () => {
  test('is repeated without asking the database', async () => {
    const { quota, asked, key } = await refusedOnce('deny-storm')
    const before = asked()
    const storm = await Promise.all(
      Array.from({ length: 50 }, () => quota.consume(key, 1, fromFreshId())),
    )
    for (const verdict of storm) {
      expect(verdict).toMatchObject({ ok: false, reason: 'insufficient', available: 0 })
    }
    expect(await quota.hold(key, 1, { ...fromFreshId(), ttl: '1 min' })).toMatchObject({
      ok: false,
    })
    expect(asked()).toBe(before)
  })

  test('control: without the cache every one of them asks', async () => {
    const { quota, asked } = startProcess('deny-storm-control', undefined)
    const key = fresh()
    await quota.consume(key, 5, fromFreshId())
    const before = asked()
    for (let n = 0; n < 10; n += 1) await quota.consume(key, 1, fromFreshId())
    expect(asked()).toBe(before + 10)
  })

  test('says nothing about a smaller cost, another key or a higher limit', async () => {
    let limit = 5
    const { quota } = startProcess('deny-other', cached, { limit: () => limit })
    const key = fresh()
    await quota.consume(key, 3, fromFreshId())
    expect(await quota.consume(key, 3, fromFreshId())).toMatchObject({ ok: false })
    expect(await quota.consume(key, 2, fromFreshId())).toMatchObject({ ok: true, available: 0 })
    expect(await quota.consume(fresh(), 3, fromFreshId())).toMatchObject({ ok: true })
    limit = 8
    expect(await quota.consume(key, 3, fromFreshId())).toMatchObject({ ok: true })
  })

  test('is stale for as long as it may be, and no longer', async () => {
    const { quota, key } = await refusedOnce('deny-stale', { forMs: 60_000 })
    const elsewhere = startProcess('deny-stale', undefined).quota
    const { rows } = await fixture.observer.query<{ id: string }>(
      'SELECT operation_id AS id FROM holdfast.movement m JOIN holdfast.account a ON a.bucket = m.bucket AND a.id = m.account WHERE a.key = $1',
      [key],
    )
    await elsewhere.refund(key, 5, { operationId: fresh(), of: rows[0]?.id as string })
    const started = performance.now()
    const clock = vi.spyOn(performance, 'now').mockReturnValue(started + 50_000)
    expect(await quota.consume(key, 1, fromFreshId())).toMatchObject({ ok: false })
    clock.mockReturnValue(started + 60_001)
    expect(await quota.consume(key, 1, fromFreshId())).toMatchObject({ ok: true })
  })

  test('ends when the verdict said that it would fit', async () => {
    // Five an hour: one comes back every twelve minutes.
    const { quota, asked } = startProcess('deny-retry-at', cached, { rate: '1 h' })
    const key = fresh()
    await quota.consume(key, 5, fromFreshId())
    await quota.consume(key, 1, fromFreshId())
    const [before, started] = [asked(), performance.now()]
    const clock = vi.spyOn(performance, 'now').mockReturnValue(started + 11 * 60_000)
    await quota.consume(key, 1, fromFreshId())
    expect(asked()).toBe(before)
    clock.mockReturnValue(started + 12.5 * 60_000)
    await quota.consume(key, 1, fromFreshId())
    expect(asked()).toBe(before + 1)
  })
})

describe('an operation id that was accepted before', () => {
  test('gets that answer again, whatever is remembered', async () => {
    const { quota } = startProcess('deny-replay', cached)
    const [key, operationId] = [fresh(), fresh()]
    const first = await quota.consume(key, 5, { operationId })
    expect(await quota.consume(key, 5, fromFreshId())).toMatchObject({ ok: false })
    expect(await quota.consume(key, 5, { operationId })).toEqual({ ...first, replayed: true })
  })

  test('control: called fresh although it is not, it is refused', async () => {
    const { quota } = startProcess('deny-replay-control', cached)
    const [key, operationId] = [fresh(), fresh()]
    await quota.consume(key, 5, { operationId })
    await quota.consume(key, 5, fromFreshId())
    expect(await quota.consume(key, 5, { operationId, freshId: true })).toMatchObject({ ok: false })
  })
})

describe('the same process forgets a refusal when something comes back', () => {
  test('by a refund', async () => {
    const { quota } = startProcess('deny-refund', cached)
    const [key, taken] = [fresh(), fromFreshId()]
    await quota.consume(key, 5, taken)
    expect(await quota.consume(key, 1, fromFreshId())).toMatchObject({ ok: false })
    await quota.refund(key, 1, { operationId: fresh(), of: taken.operationId })
    expect(await quota.consume(key, 1, fromFreshId())).toMatchObject({ ok: true })
  })

  test('by a refund over several limits', async () => {
    const { quota } = startProcess('deny-refund-lines', cached)
    const [key, scope, taken] = [fresh(), fresh(), fromFreshId()]
    const next = (): { operationId: string; freshId: true; scope: string } => ({
      ...fromFreshId(),
      scope,
    })
    await quota.consume(key, 5, { ...taken, scope })
    expect(await quota.consume(key, 1, next())).toMatchObject({ ok: false })
    const line = await quota.line(key, 1, { of: taken.operationId })
    await fixture.hf.ledger.apply([line], { operationId: fresh(), scope })
    expect(await quota.consume(key, 1, next())).toMatchObject({ ok: true })
  })

  test('by a new limit, or a correction', async () => {
    const { quota, key } = await refusedOnce('deny-limit')
    await quota.setLimit(key, 6, { operationId: fresh() })
    expect(await quota.consume(key, 1, fromFreshId())).toMatchObject({ ok: true })
    expect(await quota.consume(key, 1, fromFreshId())).toMatchObject({ ok: false })
    await quota.adjust(key, 1, { operationId: fresh(), reason: 'our mistake' })
    expect(await quota.consume(key, 1, fromFreshId())).toMatchObject({ ok: true })
  })

  test.each(['settle', 'release'] as const)('by %s of a hold', async (end) => {
    const { quota } = startProcess(`deny-${end}`, cached)
    const key = fresh()
    const held = await quota.hold(key, 5, { ...fromFreshId(), ttl: '1 min' })
    expect(await quota.consume(key, 1, fromFreshId())).toMatchObject({ ok: false })
    const holdId = (held as Accepted<number>).holdId as string
    await (end === 'settle' ? quota.settle(holdId, 4) : quota.release(holdId))
    expect(await quota.consume(key, 1, fromFreshId())).toMatchObject({ ok: true })
  })

  test('even if the refusal was still on its way', async () => {
    const { quota, delay } = startProcess('deny-in-flight', cached)
    const [key, taken] = [fresh(), fromFreshId()]
    await quota.consume(key, 5, taken)
    const arrive = deferred()
    const decided = delay(arrive.promise)
    const refused = quota.consume(key, 1, fromFreshId())
    await decided
    const tx = await callerTransaction(fixture)
    const back = { operationId: fresh(), of: taken.operationId }
    expect(await quota.refund(tx, key, 1, back)).toMatchObject({ ok: true })
    await tx.query('COMMIT')
    arrive.resolve()
    expect(await refused).toMatchObject({ ok: false })
    expect(await quota.consume(key, 1, fromFreshId())).toMatchObject({ ok: true })
  })
})

test('in a transaction of the caller the database is always asked', async () => {
  const { quota, key } = await refusedOnce('deny-joined')
  const tx = await callerTransaction(fixture)
  await tx.query(
    `UPDATE holdfast.balance b SET credited = 5 FROM holdfast.account a
     WHERE a.key = $1 AND b.bucket = a.bucket AND b.account = a.id`,
    [key],
  )
  expect(await quota.consume(tx, key, 1, { operationId: fresh() })).toMatchObject({ ok: true })
})

test('it remembers no more than it may', async () => {
  const { quota, asked } = startProcess(
    'deny-size',
    { forMs: 3_600_000, size: 3 },
    { limit: () => 0 },
  )
  const keys = Array.from({ length: 40 }, fresh)
  for (const key of keys) await quota.consume(key, 1, fromFreshId())
  const before = asked()
  for (const key of keys.toReversed()) await quota.consume(key, 1, fromFreshId())
  expect(asked() - before).toBeGreaterThanOrEqual(37)
  expect(asked() - before).toBeLessThan(40)
})

test.each([
  { forMs: 0 },
  { forMs: -1 },
  { forMs: Number.NaN },
  { forMs: Infinity },
  { forMs: 1, size: 0 },
  { forMs: 1, size: 1.5 },
])('refuses %j', (denyCache) => {
  expect(() => fixture.hf.quota({ name: 'deny', limit: 1, per: 'day', denyCache })).toThrow(
    expect.objectContaining({ code: 'OPTION_INVALID' }),
  )
})
