import { barrier, deferred, waitUntil } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import { holdfastError } from '../../../../src/core/errors.ts'
import {
  createHoldfast,
  type Holdfast,
  type LeasedTick,
  migrate,
  type Schedule,
  type ScheduleOptions,
  type Tick,
  type TickOutcome,
} from '../../../../src/sqlite.ts'
import { callerTransaction, fresh } from '../support/caller-transaction.ts'
import { crewOf, told } from '../support/crew.ts'
import { eachSqlite } from '../support/each-sqlite.ts'
import type { Handle } from '../support/sqlite-clients.ts'

const guarantees = ['transactional', 'at-least-once', 'at-most-once'] as const
type Guarantee = (typeof guarantees)[number]
/** So long apart that no test meets a real tick of it. */
const weekly = { every: '7 days' } as const
const weekUs = 7 * 86_400 * 1_000_000

const tables = ['CREATE TABLE effect (id INTEGER PRIMARY KEY, work TEXT, who TEXT)']

eachSqlite(tables, (place) => {
  const crew = crewOf(place)
  const start = async (): Promise<Holdfast<Handle>> => {
    const driver = place.driver()
    await migrate(driver)
    return createHoldfast(driver)
  }
  const run = (text: string, ...values: unknown[]): void =>
    void place
      .open()
      .prepare(text)
      .run(...values)
  /** Makes as many of the latest ticks due as is asked for, as if everybody had slept. */
  const sleepThrough = async (hf: Holdfast<Handle>, name: string, ticks: number): Promise<void> => {
    const idle = hf.schedule({ name, ...weekly, guarantee: 'transactional', handler: () => {} })
    await idle.resume()
    const last = Math.floor((Date.now() * 1_000) / weekUs) - ticks
    run('UPDATE holdfast_schedule SET last_tick = ? WHERE name = ?', last * weekUs, name)
  }
  /** How often each tick had an effect, in their order. */
  const effects = (): readonly number[] => {
    const rows = place
      .open()
      .prepare('SELECT COUNT(*) AS n FROM effect GROUP BY work ORDER BY work')
    return (rows.all() as { readonly n: number }[]).map(({ n }) => n)
  }
  const expireLeases = (name: string): void =>
    run('UPDATE holdfast_tick SET lease_until = started_at WHERE name = ? AND state < 2', name)
  const insert = (tx: Handle, tick: Date): void =>
    void tx.prepare("INSERT INTO effect (work, who) VALUES (?, '')").run(String(tick.getTime()))

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
  ): Schedule => {
    const options = { name, ...weekly, ...more }
    if (guarantee === 'transactional') {
      return hf.schedule({
        ...options,
        guarantee,
        handler: async (tx: Handle, { at }: Tick) => {
          insert(tx, at)
          await before?.(undefined)
        },
      } as ScheduleOptions<Handle>)
    }
    return hf.schedule({
      ...options,
      guarantee,
      handler: async (tick: LeasedTick<Handle>) => {
        await before?.(tick)
        await hf.transaction(async (tx) => insert(tx, tick.at))
      },
    } as ScheduleOptions<Handle>)
  }
  const countOf = (all: readonly TickOutcome[], wanted: TickOutcome['outcome']): number =>
    all.filter(({ outcome }) => outcome === wanted).length

  describe.each(guarantees)('%s', (guarantee) => {
    test('of several connections that see the same tick, one runs it', async () => {
      const hf = await start()
      const name = fresh()
      await sleepThrough(hf, name, 1)
      const together = barrier(4)
      const all = await Promise.all(
        Array.from({ length: 4 }, async () => {
          const schedule = declare(await start(), name, guarantee)
          await together()
          return await schedule.fire()
        }),
      )
      expect(countOf(all.flat(), 'done')).toBe(1)
      expect(effects()).toEqual([1])
      expect(await declare(hf, name, guarantee).history()).toMatchObject([
        { state: 'done', attempts: 1 },
      ])
    })

    test('ticks that were missed are run once each, in order, if all are wanted', async () => {
      const hf = await start()
      const name = fresh()
      await sleepThrough(hf, name, 5)
      const all = await Promise.all(
        Array.from({ length: 3 }, () =>
          declare(hf, name, guarantee, { missed: { all: 4 } }).fire(),
        ),
      )
      expect(countOf(all.flat(), 'done')).toBe(4)
      expect(effects()).toEqual([1, 1, 1, 1])
      const ticks = place.open().prepare('SELECT work FROM effect ORDER BY id').all()
      const order = (ticks as { readonly work: string }[]).map(({ work }) => Number(work))
      expect(order).toEqual(order.toSorted((a, b) => a - b))
      const [, , , oldest] = await declare(hf, name, guarantee).history()
      expect(oldest).toMatchObject({ missed: 1 })
    })

    test('a tick that was done is not run again, also when the history has forgotten it', async () => {
      const hf = await start()
      const name = fresh()
      await sleepThrough(hf, name, 1)
      const first = declare(hf, name, guarantee)
      const [done] = await first.fire()
      expect(done).toMatchObject({ outcome: 'done' })
      run('DELETE FROM holdfast_tick WHERE name = ?', name)
      expect(countOf(await declare(hf, name, guarantee).fire(), 'done')).toBe(0)
      expect(await first.fireAt(done?.at as Date)).toMatchObject({ outcome: 'passed' })
      expect(effects()).toEqual([1])
    })

    test('a handler that fails is tried again, as often as it may be', async () => {
      const hf = await start()
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
      expect(effects()).toEqual([])
      expect(await failing.history()).toMatchObject([
        { state: 'failed', attempts: runs, error: expect.stringContaining('mine') as unknown },
      ])
    })

    test('answers that are lost are asked for again: it runs once', async () => {
      const hf = await start()
      const name = fresh()
      await sleepThrough(hf, name, 1)
      const driver = place.driver()
      let lost = 0
      const lossy = createHoldfast({
        ...driver,
        async transaction(body, settings) {
          const result = await driver.transaction(body, settings)
          lost += 1
          // Of a transactional one the answer to COMMIT is never asked for again: the next look tells.
          if (lost > 2 || guarantee === 'transactional') return result
          throw holdfastError('COMMIT_UNKNOWN')
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

  describe('processes', () => {
    test.each(['fire transactional', 'fire at least once'])(
      '%s: of four, one runs each tick',
      async (what) => {
        const hf = await start()
        const name = fresh()
        await sleepThrough(hf, name, 20)
        const ran = (await crew.race(what, 4, name)).flat()
        expect(new Set(ran).size).toBe(20)
        expect(ran).toHaveLength(20)
        expect(effects()).toEqual(Array.from({ length: 20 }, () => 1))
      },
    )

    test('control: read and noted without a transaction, the tick runs in each', async () => {
      const hf = await start()
      const name = fresh()
      await sleepThrough(hf, name, 1)
      const ran = (await crew.collide('fire by hand', 3, name)).flat()
      expect(ran).toHaveLength(3)
      expect(new Set(ran).size).toBe(1)
    })

    test('a tick of one that is killed in its transaction is run by the next', async () => {
      const hf = await start()
      const name = fresh()
      await sleepThrough(hf, name, 1)
      const child = await crew.start('fire and hold', name)
      child.send('go')
      expect(await told(child)).toBe('holding')
      const next = declare(hf, name, 'transactional').fire()
      await crew.kill(child)
      expect(await next).toMatchObject([{ outcome: 'done', attempt: 1 }])
      expect(effects()).toEqual([1])
    })
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
      const hf = await start()
      const name = fresh()
      const { end } = await stalled(hf, name, 'at-most-once')
      expireLeases(name)
      expect(await declare(hf, name, 'at-most-once').fire()).toMatchObject([
        { outcome: 'lost', attempt: 0 },
      ])
      expect(await end()).toMatchObject([{ outcome: 'lost', attempt: 1 }])
      expect(effects()).toEqual([1])
    })

    test('at least once: another takes over, and the first can neither write nor say that it is done', async () => {
      const hf = await start()
      const name = fresh()
      const { tick, end } = await stalled(hf, name, 'at-least-once')
      await hf.transaction(async (tx) => await tick.guard(tx))
      expireLeases(name)
      const other = declare(hf, name, 'at-least-once')
      expect(await other.fire()).toMatchObject([{ outcome: 'done', attempt: 2 }])
      const writing = hf.transaction(async (tx) => await tick.guard(tx))
      await expect(writing).rejects.toMatchObject({ code: 'SCHEDULE_TICK_LOST' })
      expect(await end()).toMatchObject([{ outcome: 'lost', attempt: 1 }])
      // That is what at least once means.
      expect(effects()).toEqual([2])
      expect(await other.history()).toMatchObject([{ state: 'done', attempts: 2 }])
    })

    test('at least once: while another is at work on it, the first can write nothing', async () => {
      const hf = await start()
      const name = fresh()
      const { tick, end } = await stalled(hf, name, 'at-least-once')
      expireLeases(name)
      const told = await declare(hf, name, 'at-least-once', {
        before: async (other) => {
          expect(other?.attempt).toBe(2)
          await hf.transaction(async (tx) => await other?.guard(tx))
          const writing = hf.transaction(async (tx) => await tick.guard(tx))
          await expect(writing).rejects.toMatchObject({ code: 'SCHEDULE_TICK_LOST' })
        },
      }).fire()
      expect(told).toMatchObject([{ outcome: 'done', attempt: 2 }])
      expect(await end()).toMatchObject([{ outcome: 'lost' }])
    })

    test('while it guards a write, nobody takes the tick over', async () => {
      const hf = await start()
      const name = fresh()
      const { tick, end } = await stalled(hf, name, 'at-least-once')
      expireLeases(name)
      const tx = callerTransaction(place)
      await tick.guard(tx)
      let isTaken = false
      const taking = declare(hf, name, 'at-least-once', {
        before: async () => (isTaken = true),
      }).fireAt(tick.at)
      insert(tx, new Date(1))
      await new Promise(setImmediate)
      expect(isTaken).toBe(false)
      tx.exec('COMMIT')
      expect(await taking).toMatchObject({ outcome: 'done', attempt: 2 })
      expect(await end()).toMatchObject([{ outcome: 'lost' }])
      await expect(tick.guard(place.open())).rejects.toMatchObject({
        code: 'SCHEDULE_OUTSIDE_TRANSACTION',
      })
    })
  })

  test('transactional: others wait for it, and so does who pauses the schedule', async () => {
    const hf = await start()
    const name = fresh()
    await sleepThrough(hf, name, 1)
    const [started, go] = [deferred(), deferred()]
    const firing = declare(hf, name, 'transactional', {
      before: async () => {
        started.resolve()
        await go.promise
      },
    }).fire()
    await started.promise
    const other = (await start()).schedule({
      name,
      ...weekly,
      guarantee: 'transactional',
      wait: 300,
      handler: () => {},
    })
    await expect(other.pause()).rejects.toMatchObject({
      code: 'SCHEDULE_TIMEOUT',
      blockers: [{ pid: process.pid }],
    })
    const second = other.fire()
    go.resolve()
    expect(await firing).toMatchObject([{ outcome: 'done' }])
    expect(countOf(await second, 'done')).toBe(0)
    expect([await other.pause(), await other.pause()]).toEqual([true, false])
    expect(await other.fireAt(new Date())).toMatchObject({ outcome: 'paused' })
    expect(await other.runNow()).toMatchObject({ outcome: 'done', manual: true })
    expect([await other.resume(), await other.resume()]).toEqual([true, false])
    expect(effects()).toEqual([1])
  })

  test('runs by hand within one millisecond are runs of their own', async () => {
    const hf = await start()
    const name = fresh()
    let runs = 0
    const schedule = hf.schedule({
      name,
      ...weekly,
      guarantee: 'at-least-once',
      overlap: 'allow',
      handler: () => void (runs += 1),
    })
    const outcomes = await Promise.all(Array.from({ length: 12 }, () => schedule.runNow()))
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(outcomes.map(() => 'done'))
    expect(runs).toBe(12)
    expect(await schedule.history()).toHaveLength(12)
  })

  test('it runs in the background until it is stopped, and keeps the latest ticks', async () => {
    const hf = await start()
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
    const other = (await start()).schedule(options)
    const runnings = [schedule.start(), other.start()]
    await waitUntil('four ticks', () => ticks.length >= 4 || undefined, { limitMs: 30_000 })
    for (const running of runnings) expect(await running.stop()).toEqual({ left: 0 })
    expect(new Set(ticks).size).toBe(ticks.length)
    expect(ticks).toEqual(ticks.toSorted((a, b) => a - b))
    expect((await schedule.history()).length).toBeLessThanOrEqual(3)
  })

  test('inside a transaction of ours it is refused, and without the tables it says so', async () => {
    const hf = await start()
    const name = fresh()
    const nested = hf.transaction(async () => await declare(hf, name, 'at-least-once').fire())
    await expect(nested).rejects.toMatchObject({ code: 'TX_NESTED' })
    run('DROP TABLE holdfast_tick')
    await expect(declare(hf, name, 'transactional').fire()).rejects.toMatchObject({
      code: 'SCHEMA_MISSING',
    })
  })
})
