/** R10: a unique job that comes while its twin runs asks to run once more, with the newest payload. */
import { barrier, deferred, waitUntil, waitUntilBlocked } from '@holdfast/testkit'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast } from '../../../src/index.ts'
import { appRole } from '../../support/app-role.ts'
import { ledgerFixture } from '../../support/ledger-fixture.ts'
import { callerTransaction, pidOf } from '../../support/pg-fixture.ts'

const fixture = ledgerFixture()
const role = appRole(fixture)

let queues = 0
/** As the application's role, which may not add rows by itself. */
function queue(options: object = {}) {
  queues += 1
  const work = createHoldfast(fromPg(role.pool)).work<number>({
    queue: `after ${queues}`,
    backoff: { first: 1, most: 1 },
    ...options,
  })
  const after = (payload: number, more: object = {}) =>
    work.enqueue({ payload, uniqueKey: 'site', whileRunning: 'run-after', ...more })
  return { work, after, name: `after ${queues}` }
}

const payloadsOf = (claims: readonly { row: { payload: number } }[]): number[] =>
  claims.map(({ row }) => row.payload)

describe('R10: run-after', () => {
  test('exactly one more run, with the newest payload, however many come', async () => {
    const { work, after } = queue()
    expect(await after(1)).toMatchObject({ added: true })
    const running = await work.claim(9)
    for (const payload of [2, 3, 4]) {
      expect(await after(payload)).toEqual({
        id: running[0]?.row.id,
        added: false,
        follow: 'after',
      })
    }
    expect(await work.claim(9)).toEqual([])
    await work.complete(running)
    const next = await work.claim(9)
    expect(payloadsOf(next)).toEqual([4])
    expect(next[0]?.attempt).toBe(1)
    await work.complete(next)
    expect(await work.claim(9)).toEqual([])
  })

  test('one that has not begun takes the newest payload, and runs once', async () => {
    const { work, after } = queue()
    await after(1)
    expect(await after(2)).toMatchObject({ added: false, follow: 'replaced' })
    expect(
      await work.enqueue([{ payload: 3, uniqueKey: 'site', whileRunning: 'run-after' }]),
    ).toEqual([expect.objectContaining({ follow: 'replaced' })])
    const claims = await work.claim(9)
    expect(payloadsOf(claims)).toEqual([3])
    await work.complete(claims)
    expect(await work.claim(9)).toEqual([])
  })

  test('control: without it, what came meanwhile never runs', async () => {
    const { work } = queue()
    await work.enqueue({ payload: 1, uniqueKey: 'site' })
    const running = await work.claim()
    expect(await work.enqueue({ payload: 2, uniqueKey: 'site' })).toMatchObject({ added: false })
    await work.complete(running)
    expect(await work.claim(9)).toEqual([])
  })

  test('control: without the trigger, nothing follows', async () => {
    const { work, after } = queue()
    await after(1)
    const running = await work.claim()
    await after(2)
    await fixture.observer.query('ALTER TABLE holdfast.work DISABLE TRIGGER work_done_follow')
    await work.complete(running)
    await fixture.observer.query('ALTER TABLE holdfast.work ENABLE TRIGGER work_done_follow')
    expect(await work.claim(9)).toEqual([])
  })

  test('a twin that fails is tried again first, then the newest runs', async () => {
    const { work, after } = queue()
    await after(1)
    await work.fail(await work.claim(), { retryInMs: 0 })
    expect(await after(2)).toMatchObject({ follow: 'after' })
    const retried = await waitUntil('it can be claimed', async () => {
      const claims = await work.claim(9)
      return claims.length > 0 ? claims : undefined
    })
    expect([payloadsOf(retried), retried[0]?.attempt]).toEqual([[1], 2])
    await after(3)
    await work.complete(retried)
    expect(payloadsOf(await work.claim(9))).toEqual([3])
  })

  test('a twin that dies is followed at once, and not again when it is retried', async () => {
    const { work, after } = queue()
    await after(1, { maxAttempts: 1 })
    const running = await work.claim()
    await after(2, { maxAttempts: 7, priority: 3 })
    await work.fail(running)
    const next = await work.claim(9)
    expect(payloadsOf(next)).toEqual([2])
    expect(next[0]?.row.priority).toBe(3)
    await work.complete(next)
    const [dead] = (await work.dead.list()).rows
    expect((await work.dead.retry(dead?.row.id as string)).done).toHaveLength(1)
    const again = await work.claim(9)
    expect(payloadsOf(again)).toEqual([1])
    await work.complete(again)
    expect(await work.claim(9)).toEqual([])
  })

  test('a twin whose worker died is given back, finished, and then followed', async () => {
    const { work, after, name } = queue()
    await after(1)
    await work.claim()
    await after(2)
    await fixture.observer.query(
      `UPDATE holdfast.work SET lease_until = now() - interval '1 s' WHERE queue = $1`,
      [name],
    )
    expect((await work.recover()).freed).toBe(1)
    const retried = await work.claim(9)
    expect(payloadsOf(retried)).toEqual([1])
    await work.complete(retried)
    expect(payloadsOf(await work.claim(9))).toEqual([2])
  })

  test('released, it has not begun: it takes the newest payload', async () => {
    const { work, after } = queue()
    await after(1)
    const running = await work.claim()
    await after(2)
    await work.release(running)
    expect(await after(3)).toMatchObject({ follow: 'replaced' })
    const claims = await work.claim(9)
    expect(payloadsOf(claims)).toEqual([3])
    await work.complete(claims)
    expect(await work.claim(9)).toEqual([])
  })

  test('one that comes while the twin is being completed is not lost: forced', async () => {
    const { work } = queue()
    const { hf } = fixture
    const same = hf.work<number>({ queue: `after ${queues}` })
    await work.enqueue({ payload: 1, uniqueKey: 'site' })
    const [claim] = await same.claim()
    const ending = await callerTransaction(fixture)
    await same.complete(ending, claim ?? [])
    const adding = await callerTransaction(fixture)
    const pid = await pidOf(adding)
    const coming = same.enqueue(adding, {
      payload: 2,
      uniqueKey: 'site',
      whileRunning: 'run-after',
    })
    await waitUntilBlocked(fixture.observer, pid)
    await ending.query('COMMIT')
    expect(await coming).toMatchObject({ added: true })
    await adding.query('COMMIT')
    expect(payloadsOf(await work.claim(9))).toEqual([2])
  })

  test('the other way round: the twin’s end waits for one that has come, and is followed: forced', async () => {
    const { work } = queue()
    const same = fixture.hf.work<number>({ queue: `after ${queues}` })
    await work.enqueue({ payload: 1, uniqueKey: 'site' })
    const [claim] = await same.claim()
    const adding = await callerTransaction(fixture)
    await same.enqueue(adding, { payload: 2, uniqueKey: 'site', whileRunning: 'run-after' })
    const ending = await callerTransaction(fixture)
    const pid = await pidOf(ending)
    const completing = same.complete(ending, claim ?? [])
    await waitUntilBlocked(fixture.observer, pid)
    await adding.query('COMMIT')
    await completing
    await ending.query('COMMIT')
    expect(payloadsOf(await work.claim(9))).toEqual([2])
  })

  test('many at once while it runs: one more run', async () => {
    const { work, after } = queue()
    await after(0)
    const running = await work.claim()
    const ready = barrier(6)
    const answers = await Promise.all(
      [1, 2, 3, 4, 5, 6].map(async (payload) => {
        await ready()
        return await after(payload)
      }),
    )
    expect(answers.every(({ follow }) => follow === 'after')).toBe(true)
    await work.complete(running)
    const next = await work.claim(9)
    expect(next).toHaveLength(1)
    await work.complete(next)
    expect(await work.claim(9)).toEqual([])
  })

  test('a worker runs the job, then once more, and sees the newest payload', async () => {
    const { work, after } = queue({ notify: true })
    const [begun, goOn] = [deferred<void>(), deferred<void>()]
    const seen: number[] = []
    await after(1)
    const worker = await work.run({
      poll: { min: 5, max: 20 },
      async transactionHandler(_, { payload }) {
        seen.push(payload)
        begun.resolve()
        await goOn.promise
      },
    })
    onTestFinished(async () => void (await worker.stop({ within: 1 })))
    await begun.promise
    await after(2)
    await after(3)
    goOn.resolve()
    await waitUntil('both ran', () => seen.length === 2 || undefined)
    await worker.drain()
    expect(seen).toEqual([1, 3])
  })

  test('needs a unique key', async () => {
    const { work } = queue()
    await expect(work.enqueue({ payload: 1, whileRunning: 'run-after' })).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
    await expect(
      work.enqueue({ payload: 1, uniqueKey: 'k', whileRunning: 'later' as 'run-after' }),
    ).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })

  test('any history: the last payload is always run, and nothing is left over', async () => {
    const step = fc.constantFrom('enqueue', 'claim', 'complete', 'fail', 'release', 'recover')
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 14 }), async (steps) => {
        const { work, after } = queue()
        let [last, done] = [0, 0]
        let claims: Awaited<ReturnType<typeof work.claim>> = []
        const finish = async (): Promise<void> => {
          done = claims[0]?.row.payload ?? done
          await work.complete(claims)
          claims = []
        }
        for (const each of steps) {
          if (each === 'enqueue') await after((last += 1), { maxAttempts: 1_000 })
          else if (each === 'claim' && claims.length === 0) claims = await work.claim(9)
          else if (each === 'complete') await finish()
          else if (each === 'recover') await work.recover()
          else if (each === 'fail' || each === 'release') {
            if (each === 'fail') await work.fail(claims, { retryInMs: 0 })
            else await work.release(claims)
            claims = []
          }
          expect(claims.length).toBeLessThan(2)
        }
        await finish()
        for (let more = await work.claim(9); more.length > 0; more = await work.claim(9)) {
          claims = more
          await finish()
        }
        expect(done).toBe(last)
      }),
      { numRuns: 25 },
    )
  })
})
