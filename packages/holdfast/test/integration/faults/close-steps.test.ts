import { deferred } from '@holdfast/testkit'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast, lockKey } from '../../../src/index.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'

/** What is under way when Holdfast is closed goes through its own steps; nothing else begins. */
const fixture = ledgerFixture(`
  CREATE TABLE document (id bigint PRIMARY KEY, version bigint NOT NULL DEFAULT 1, body text);
  INSERT INTO document (id) VALUES (1)`)

function opened(): Holdfast<pg.PoolClient> {
  const pool = new pg.Pool({ connectionString: fixture.database.url, max: 8 })
  onTestFinished(() => pool.end())
  return createHoldfast(fromPg(pool))
}

describe('T4: close waits for a body of', () => {
  type Bodied = (hf: Holdfast<pg.PoolClient>, body: () => Promise<void>) => Promise<unknown>
  const bodies: Record<string, Bodied> = {
    'rows.optimistic': (hf, body) => hf.rows.optimistic(body),
    'rows.withVersionCheck': (hf, body) =>
      hf.rows.withVersionCheck('document', 1, { work: body, write: () => Promise.resolve() }),
    transaction: (hf, body) => hf.transaction(body),
    guard: (hf, body) => hf.guard(lockKey('close', fresh()), body),
    once: (hf, body) => hf.once(fresh(), body),
  }
  test.each(Object.entries(bodies))('%s', async (_, run) => {
    const hf = opened()
    const [entered, go] = [deferred(), deferred()]
    let done = false
    const running = run(hf, async () => {
      entered.resolve()
      await go.promise
      done = true
    })
    await entered.promise
    // With so little time the body is left, and told.
    const { left } = await hf.close({ within: '10 ms', leaveAfter: '10 ms' })
    expect({ left, done }).toEqual({ left: [{ what: 'transaction', name: '' }], done: false })
    go.resolve()
    await running
  })
})

/** A call that is in its body, and a close that has begun. */
async function closedMeanwhile<T>(
  hf: Holdfast<pg.PoolClient>,
  run: (inBody: <R>(rest: () => Promise<R>) => Promise<R>) => Promise<T>,
): Promise<{ readonly result: T; readonly left: readonly unknown[] }> {
  const [entered, closing] = [deferred(), deferred()]
  const running = run(async (rest) => {
    entered.resolve()
    await closing.promise
    return await rest()
  })
  await entered.promise
  const closed = hf.close()
  closing.resolve()
  return { result: await running, left: (await closed).left }
}

describe('while it closes', () => {
  test('a body under a lock takes locks, books and enqueues in its transaction', async () => {
    const hf = opened()
    const quota = hf.quota({ name: fresh(), limit: 5, per: 'lifetime' })
    const work = hf.work<number>({ queue: fresh() })
    const { result, left } = await closedMeanwhile(hf, (inBody) =>
      hf.guard(lockKey('steps', fresh()), (tx) =>
        inBody(async () => {
          await hf.locks.acquire(tx, lockKey('steps', `more ${fresh()}`), { waitMs: 100 })
          await hf.rows.lock(tx, 'document', [1])
          const { ok } = await quota.consume(tx, 'key', 1, { operationId: fresh() })
          const { added } = await work.enqueue(tx, { payload: 1 })
          return { ok, added }
        }),
      ),
    )
    expect({ result, left }).toEqual({ result: { ok: true, added: true }, left: [] })
  })

  test('a handler of a worker opens transactions of its own, and its row is completed', async () => {
    const hf = opened()
    const queue = fresh()
    const work = hf.work<number>({ queue })
    await work.enqueue({ payload: 7 })
    const handled = deferred<unknown>()
    const { left } = await closedMeanwhile(hf, async (inBody) => {
      await work.run({
        handler: ({ payload }, { claim }) =>
          inBody(async () => {
            await hf.guard(lockKey('steps', fresh()), () => Promise.resolve())
            await work.heartbeat(claim)
            handled.resolve(payload)
          }),
      })
      await handled.promise
    })
    expect({ handled: await handled.promise, left }).toEqual({ handled: 7, left: [] })
    const { rowCount } = await fixture.observer.query(
      'SELECT FROM holdfast.work WHERE queue = $1',
      [queue],
    )
    expect(rowCount).toBe(0)
  })

  test('a step that its body does not wait for is waited for', async () => {
    const hf = opened()
    const [slow, begun] = [deferred(), deferred()]
    let committed = false
    const { left } = await closedMeanwhile(hf, (inBody) =>
      hf
        .quota({ name: fresh(), limit: 5, per: 'lifetime' })
        .withHold('key', { estimate: 1, ttl: '1 min', operationId: fresh() }, () =>
          inBody(async () => {
            void hf
              .transaction(async () => {
                begun.resolve()
                await slow.promise
              })
              .then(() => (committed = true))
            await begun.promise
            setTimeout(slow.resolve, 0)
          }),
        ),
    )
    expect({ committed, left }).toEqual({ committed: true, left: [] })
  })

  test('what a body leaves behind begins nothing when the body is over', async () => {
    const hf = opened()
    const [over, later] = [deferred(), deferred<unknown>()]
    await closedMeanwhile(hf, (inBody) =>
      hf.transaction(() =>
        inBody(() => {
          const begin = async (): Promise<void> => {
            await over.promise
            later.resolve(await hf.transaction(() => Promise.resolve()).catch((error) => error))
          }
          void begin()
          return Promise.resolve()
        }),
      ),
    )
    over.resolve()
    expect(await later.promise).toMatchObject({ code: 'HOLDFAST_CLOSED' })
  })

  test('whoever waits for a lease is told at once, and has none', async () => {
    const [hf, other] = [opened(), opened()]
    const name = fresh()
    const held = await other.leases.acquire(name)
    const waiting = hf.leases.acquire(name, { wait: Infinity }).catch((error: unknown) => error)
    await hf.leases.read(name)
    expect(await hf.close()).toEqual({ left: [] })
    expect(await waiting).toMatchObject({ code: 'HOLDFAST_CLOSING' })
    await held.release()
  })

  test('another Holdfast in the same process goes on', async () => {
    const [hf, other] = [opened(), opened()]
    await hf.close()
    expect(await other.transaction(() => Promise.resolve('committed'))).toBe('committed')
    // Nor does the body of one open the door of another.
    const inside = other.transaction(() => hf.transaction(() => Promise.resolve()))
    await expect(inside).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED' })
  })
})

test('a second close is the same one', async () => {
  const hf = opened()
  const [entered, never] = [deferred(), deferred()]
  const running = hf.transaction(async () => {
    entered.resolve()
    await never.promise
  })
  await entered.promise
  const first = hf.close({ within: '10 ms', leaveAfter: '10 ms' })
  const second = hf.close()
  expect(await second).toBe(await first)
  never.resolve()
  await running
})

test('a close that cannot work closes nothing', async () => {
  const hf = opened()
  await expect(hf.close({ within: 'soon' as '1 s' })).rejects.toMatchObject({
    code: 'OPTION_INVALID',
  })
  expect(await hf.transaction(() => Promise.resolve('committed'))).toBe('committed')
})

test('what was claimed before can be completed after close', async () => {
  const hf = opened()
  const work = hf.work<number>({ queue: fresh() })
  await work.enqueue({ payload: 1 })
  const claims = await work.claim(1)
  await hf.close()
  expect(await work.complete(claims)).toMatchObject({ kept: claims })
  await expect(work.claim(1)).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED' })
})

test('control: what was drained or stopped is not known any more', async () => {
  const hf = opened()
  const work = hf.work<number>({ queue: fresh() })
  const worker = await work.run({ handler: () => Promise.resolve() })
  await worker.drain()
  await (await hf.observe.record())[Symbol.asyncDispose]()
  await hf.ledger.startSweeper().stop()
  expect(await hf.close({ within: 1, leaveAfter: 1 })).toEqual({ left: [] })
})
