import { barrier, deferred, waitUntil } from '@holdfast/testkit'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import {
  createHoldfast,
  type Holdfast,
  type LeasedTick,
  migrate,
  type ScheduleOptions,
  type Tick,
  type TickOutcome,
} from '../../../../src/mysql.ts'
import { callerTransaction, fresh } from '../support/caller-transaction.ts'
import { eachInnodb } from '../support/each-innodb.ts'
import type { Handle, InnodbClient } from '../support/innodb-clients.ts'

const guarantees = ['transactional', 'at-least-once', 'at-most-once'] as const
type Guarantee = (typeof guarantees)[number]
/** So long apart that no test meets a real tick of it. */
const weekly = { every: '7 days' } as const
const weekUs = 7 * 86_400 * 1_000_000

eachInnodb((place) => {
  beforeAll(async () => {
    await using pool = place.pool()
    await using session = await place.session()
    await migrate(pool.driver)
    await session.all(
      'CREATE TABLE effect (id INT AUTO_INCREMENT PRIMARY KEY, tick BIGINT, what VARCHAR(64)) ENGINE=InnoDB',
    )
  })
  const start = (): { pool: InnodbClient; hf: Holdfast<Handle> } => {
    const pool = place.pool(14)
    // After the connections of the test were given back.
    onTestFinished(async () => await pool[Symbol.asyncDispose]())
    return { pool, hf: createHoldfast(pool.driver) }
  }
  const run = async (text: string, ...values: unknown[]): Promise<void> => {
    await using session = await place.session()
    await session.rows(text, values)
  }
  /** Makes as many of the latest ticks due as is asked for, as if everybody had slept. */
  const sleepThrough = async (hf: Holdfast<Handle>, name: string, ticks: number): Promise<void> => {
    await hf.schedule({ name, ...weekly, guarantee: 'transactional', handler: () => {} }).history()
    await hf.schedule({ name, ...weekly, guarantee: 'transactional', handler: () => {} }).resume()
    const last = Math.floor((Date.now() * 1_000) / weekUs) - ticks
    await run('UPDATE holdfast_schedule SET last_tick = ? WHERE name = ?', last * weekUs, name)
  }
  /** What the handlers left behind, by tick. */
  const effects = async (what: string): Promise<readonly number[]> => {
    await using session = await place.session()
    const rows = await session.rows(
      'SELECT COUNT(*) AS n FROM effect WHERE what = ? GROUP BY tick ORDER BY tick',
      [what],
    )
    return rows.map(({ n }) => Number(n))
  }
  const expireLeases = async (name: string): Promise<void> =>
    await run(
      `UPDATE holdfast_tick t JOIN holdfast_schedule s ON s.id = t.id
       SET t.lease_until = t.started_at WHERE s.name = ? AND t.state < 2`,
      name,
    )
  const insert = (tick: Date, what: string): string =>
    `INSERT INTO effect (tick, what) VALUES (${tick.getTime()}, '${what}')`

  interface More extends Pick<ScheduleOptions<Handle>, 'missed' | 'wait'> {
    readonly attempts?: number
    readonly retryAfter?: number
    readonly before?: (tick: LeasedTick<Handle> | undefined) => Promise<unknown>
  }
  const declare = (
    hf: Holdfast<Handle>,
    name: string,
    guarantee: Guarantee,
    { before, ...more }: More = {},
  ): ReturnType<typeof hf.schedule> => {
    const options = { name, ...weekly, ...more }
    if (guarantee === 'transactional') {
      return hf.schedule({
        ...options,
        guarantee,
        handler: async (tx: Handle, { at }: Tick) => {
          await tx.query(insert(at, name))
          await before?.(undefined)
        },
      } as ScheduleOptions<Handle>)
    }
    return hf.schedule({
      ...options,
      guarantee,
      handler: async (tick: LeasedTick<Handle>) => {
        await before?.(tick)
        await hf.transaction(async (tx) => await tx.query(insert(tick.at, name)))
      },
    } as ScheduleOptions<Handle>)
  }
  const countOf = (all: readonly TickOutcome[], wanted: TickOutcome['outcome']): number =>
    all.filter(({ outcome }) => outcome === wanted).length

  describe.each(guarantees)('%s', (guarantee) => {
    test('of many processes that see the same tick, one runs it', async () => {
      const { hf } = start()
      const name = fresh()
      await sleepThrough(hf, name, 1)
      const together = barrier(4)
      const all = await Promise.all(
        Array.from({ length: 4 }, async () => {
          const schedule = declare(createHoldfast(start().pool.driver), name, guarantee)
          await together()
          return await schedule.fire()
        }),
      )
      expect(countOf(all.flat(), 'done')).toBe(1)
      expect(await effects(name)).toEqual([1])
      expect(await declare(hf, name, guarantee).history()).toMatchObject([
        { state: 'done', attempts: 1 },
      ])
    })

    test('ticks that were missed are run once each, in order, if all are wanted', async () => {
      const { hf } = start()
      const name = fresh()
      await sleepThrough(hf, name, 5)
      const all = await Promise.all(
        Array.from({ length: 3 }, () =>
          declare(hf, name, guarantee, { missed: { all: 4 } }).fire(),
        ),
      )
      expect(countOf(all.flat(), 'done')).toBe(4)
      expect(await effects(name)).toEqual([1, 1, 1, 1])
      await using session = await place.session()
      const ticks = await session.rows('SELECT tick FROM effect WHERE what = ? ORDER BY id', [name])
      const order = ticks.map(({ tick }) => Number(tick))
      expect(order).toEqual(order.toSorted((a, b) => a - b))
      const [, , , oldest] = await declare(hf, name, guarantee).history()
      expect(oldest).toMatchObject({ missed: 1 })
    })

    test('a tick that was done is not run again, also when the history has forgotten it', async () => {
      const { hf } = start()
      const name = fresh()
      await sleepThrough(hf, name, 1)
      const first = declare(hf, name, guarantee)
      const [done] = await first.fire()
      expect(done).toMatchObject({ outcome: 'done' })
      await run(
        'DELETE t FROM holdfast_tick t JOIN holdfast_schedule s ON s.id = t.id WHERE s.name = ?',
        name,
      )
      expect(countOf(await declare(hf, name, guarantee).fire(), 'done')).toBe(0)
      expect(await first.fireAt(done?.at as Date)).toMatchObject({ outcome: 'passed' })
      expect(await effects(name)).toEqual([1])
    })

    test('a handler that fails is tried again, as often as it may be', async () => {
      const { hf } = start()
      const name = fresh()
      await sleepThrough(hf, name, 1)
      let runs = 0
      const failing = declare(hf, name, guarantee, {
        ...(guarantee === 'at-most-once' ? {} : { attempts: 2, retryAfter: 1 }),
        before: async () => {
          runs += 1
          throw new Error('mine')
        },
      })
      const outcomes: TickOutcome[] = []
      await waitUntil('it has failed', async () => {
        outcomes.push(...(await failing.fire()))
        return countOf(outcomes, 'failed') > 0 || undefined
      })
      expect(runs).toBe(guarantee === 'at-most-once' ? 1 : 2)
      expect(await effects(name)).toEqual([])
      expect(await failing.history()).toMatchObject([
        { state: 'failed', attempts: runs, error: expect.stringContaining('mine') as unknown },
      ])
    })

    test('answers that are lost are asked for again: it runs once', async () => {
      const { pool, hf } = start()
      const name = fresh()
      await sleepThrough(hf, name, 1)
      const { driver } = pool
      let lost = 0
      const lossy = createHoldfast({
        ...driver,
        async transaction(body, settings) {
          const result = await driver.transaction(body, settings)
          lost += 1
          // Of a transactional one the answer to COMMIT is never asked for again: the next look tells.
          if (lost > 2 || guarantee === 'transactional') return result
          throw Object.assign(new Error('reset'), { code: 'ECONNRESET' })
        },
      } as typeof driver)
      let runs = 0
      const schedule = lossy.schedule({
        name,
        ...weekly,
        guarantee: guarantee === 'transactional' ? 'at-least-once' : guarantee,
        handler: () => void (runs += 1),
      })
      expect(await schedule.fire()).toMatchObject([{ outcome: 'done', attempt: 1 }])
      expect(runs).toBe(1)
      expect(await schedule.fire()).toEqual([])
    })
  })

  test('control: a lock that is only tried runs the same tick in both processes', async () => {
    const { pool } = start()
    const name = fresh()
    for (const _ of [1, 2]) {
      const tx = await callerTransaction(pool)
      const rows = await pool.rows(
        tx,
        'SELECT id FROM holdfast_schedule LIMIT 1 FOR UPDATE SKIP LOCKED',
      )
      if (rows.length > 0) await tx.query(insert(new Date(0), name))
      await tx.commit()
    }
    expect(await effects(name)).toEqual([2])
  })

  describe('a process that falls silent', () => {
    const stalled = async (
      hf: Holdfast<Handle>,
      name: string,
      guarantee: Guarantee,
    ): Promise<{ tick: LeasedTick<Handle>; end(): Promise<TickOutcome[]> }> => {
      await sleepThrough(hf, name, 1)
      const [started, go] = [deferred<LeasedTick<Handle>>(), deferred()]
      const firing = declare(hf, name, guarantee, {
        before: async (tick) => {
          started.resolve(tick as LeasedTick<Handle>)
          await go.promise
        },
      }).fire()
      return {
        tick: await started.promise,
        end: async () => {
          go.resolve()
          return await firing
        },
      }
    }

    test('at most once: the tick is lost, and nobody runs it again', async () => {
      const { hf } = start()
      const name = fresh()
      const { end } = await stalled(hf, name, 'at-most-once')
      await expireLeases(name)
      expect(await declare(hf, name, 'at-most-once').fire()).toMatchObject([
        { outcome: 'lost', attempt: 0 },
      ])
      expect(await end()).toMatchObject([{ outcome: 'lost', attempt: 1 }])
      expect(await effects(name)).toEqual([1])
    })

    test('at least once: another takes over, and the first can neither write nor say that it is done', async () => {
      const { hf } = start()
      const name = fresh()
      const { tick, end } = await stalled(hf, name, 'at-least-once')
      await hf.transaction(async (tx) => await tick.guard(tx))
      await expireLeases(name)
      const other = declare(hf, name, 'at-least-once')
      expect(await other.fire()).toMatchObject([{ outcome: 'done', attempt: 2 }])
      const writing = hf.transaction(async (tx) => await tick.guard(tx))
      await expect(writing).rejects.toMatchObject({ code: 'SCHEDULE_TICK_LOST' })
      expect(await end()).toMatchObject([{ outcome: 'lost', attempt: 1 }])
      // That is what at least once means.
      expect(await effects(name)).toEqual([2])
      expect(await other.history()).toMatchObject([{ state: 'done', attempts: 2 }])
    })

    test('while it guards a write, nobody takes the tick over', async () => {
      const { pool, hf } = start()
      const name = fresh()
      const { tick, end } = await stalled(hf, name, 'at-least-once')
      const tx = await callerTransaction(pool)
      await expireLeases(name)
      await tick.guard(tx)
      const other = declare(hf, name, 'at-least-once', { wait: 100 })
      expect(await other.fireAt(tick.at)).toMatchObject({ outcome: 'busy' })
      await tx.commit()
      await expireLeases(name)
      expect(await other.fireAt(tick.at)).toMatchObject({ outcome: 'done', attempt: 2 })
      expect(await end()).toMatchObject([{ outcome: 'lost' }])
      const outside = await pool.connect()
      await expect(tick.guard(outside)).rejects.toMatchObject({
        code: 'SCHEDULE_OUTSIDE_TRANSACTION',
      })
      await outside.release()
    })
  })

  test('transactional: it waits for nobody, and what is paused waits for it', async () => {
    const { hf } = start()
    const name = fresh()
    await sleepThrough(hf, name, 1)
    const [started, go] = [deferred(), deferred()]
    const working = declare(hf, name, 'transactional', {
      before: async () => {
        started.resolve()
        await go.promise
      },
    })
    const firing = working.fire()
    await started.promise
    const other = hf.schedule({
      name,
      ...weekly,
      guarantee: 'transactional',
      wait: 300,
      handler: () => {},
    })
    expect(countOf(await other.fire(), 'busy')).toBe(1)
    await expect(other.pause()).rejects.toMatchObject({ code: 'SCHEDULE_TIMEOUT' })
    go.resolve()
    expect(await firing).toMatchObject([{ outcome: 'done' }])
    expect([await other.pause(), await other.pause()]).toEqual([true, false])
    expect(await other.fireAt(new Date())).toMatchObject({ outcome: 'paused' })
    expect(await other.runNow()).toMatchObject({ outcome: 'done', manual: true })
    expect([await other.resume(), await other.resume()]).toEqual([true, false])
    expect(await effects(name)).toEqual([1])
  })

  test('it runs in the background until it is stopped, and keeps the latest ticks', async () => {
    const { hf } = start()
    const name = fresh()
    const ticks: number[] = []
    const options: ScheduleOptions<Handle> = {
      name,
      every: '1 s',
      guarantee: 'at-least-once',
      keep: 2,
      handler: ({ at }) => void ticks.push(at.getTime()),
    }
    const schedule = hf.schedule(options)
    const other = createHoldfast(start().pool.driver).schedule(options)
    const runnings = [schedule.start(), other.start()]
    await waitUntil('four ticks', () => ticks.length >= 4 || undefined, { limitMs: 30_000 })
    for (const running of runnings) expect(await running.stop()).toEqual({ left: 0 })
    expect(new Set(ticks).size).toBe(ticks.length)
    expect(ticks).toEqual(ticks.toSorted((a, b) => a - b))
    expect((await schedule.history()).length).toBeLessThanOrEqual(3)
  })

  test('inside a transaction of ours it is refused, and without the tables it says so', async () => {
    const { pool, hf } = start()
    const name = fresh()
    const nested = hf.transaction(async () => await declare(hf, name, 'at-least-once').fire())
    await expect(nested).rejects.toMatchObject({ code: 'TX_NESTED' })
    const elsewhere = createHoldfast(pool.driver, { database: 'mysql' })
    await expect(declare(elsewhere, name, 'transactional').fire()).rejects.toMatchObject({
      code: 'SCHEMA_MISSING',
    })
  })
}, 'the server')
