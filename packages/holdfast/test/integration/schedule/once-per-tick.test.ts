import { barrier, deferred, waitUntil, waitUntilBlocked } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import type { Schedule, ScheduleOptions, TickOutcome } from '../../../src/entries/schedule.ts'
import type { PoolClient } from 'pg'
import { callerTransaction, pidOf } from '../../support/pg-fixture.ts'
import {
  effects,
  expireLeases,
  freshName,
  scheduleFixture,
  sleepThrough,
  weekly,
} from './schedule-room.ts'

const fixture = scheduleFixture()
const guarantees = ['at-most-once', 'at-least-once', 'transactional'] as const
const instances = 6

/** A schedule whose handler leaves one row, under any of the guarantees. */
function declare(
  name: string,
  guarantee: (typeof guarantees)[number],
  options: Partial<ScheduleOptions<PoolClient>> & {
    before?: () => Promise<unknown>
    after?: () => Promise<unknown>
  } = {},
): Schedule {
  const { before, after, ...others } = options
  const insert = async (client: Pick<PoolClient, 'query'>, at: Date): Promise<void> => {
    await before?.()
    await client.query('INSERT INTO effect VALUES ($1, $2)', [at, name])
    await after?.()
  }
  const handlers = {
    'at-most-once': {
      guarantee,
      handler: ({ at }: { at: Date }) => insert(fixture.pool as never, at),
    },
    'at-least-once': {
      guarantee,
      handler: ({ at }: { at: Date }) => insert(fixture.pool as never, at),
    },
    transactional: {
      guarantee,
      handler: async (tx: PoolClient, { at }: { at: Date }) => await insert(tx, at),
    },
  }
  return fixture.hf.schedule({
    name,
    ...weekly,
    ...others,
    ...handlers[guarantee],
  } as ScheduleOptions<PoolClient>)
}

function countOf(outcomes: readonly TickOutcome[], wanted: TickOutcome['outcome']): number {
  return outcomes.filter(({ outcome }) => outcome === wanted).length
}

describe.each(guarantees)('%s', (guarantee) => {
  test('of many processes that see the same tick, one runs it', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 1)
    const together = barrier(instances)
    const all = await Promise.all(
      Array.from({ length: instances }, async () => {
        const schedule = declare(name, guarantee)
        await together()
        return await schedule.fire()
      }),
    )
    expect(countOf(all.flat(), 'done')).toBe(1)
    expect(await effects(fixture.observer, name)).toEqual([1])
    expect(await declare(name, guarantee).history()).toMatchObject([{ state: 'done', attempts: 1 }])
  })

  test('a tick that was missed is run once, each of them if all are wanted', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 5)
    const all = await Promise.all(
      Array.from({ length: 3 }, () => declare(name, guarantee, { missed: { all: 4 } }).fire()),
    )
    expect(countOf(all.flat(), 'done')).toBe(4)
    expect(await effects(fixture.observer, name)).toEqual([1, 1, 1, 1])
    const [, , , oldest] = await declare(name, guarantee).history()
    expect(oldest).toMatchObject({ missed: 1 })
  })

  test('a handler that comes 200 ms late finds it done: no row, no second run', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 1)
    const first = declare(name, guarantee)
    expect(countOf(await first.fire(), 'done')).toBe(1)
    // Also when the history has forgotten it.
    await fixture.observer.query('DELETE FROM holdfast.tick WHERE schedule = $1', [name])
    expect(countOf(await declare(name, guarantee).fire(), 'done')).toBe(0)
    const [tick] = await fixture.observer
      .query<{ tick: Date }>('SELECT tick FROM effect WHERE what = $1', [name])
      .then(({ rows }) => rows)
    expect(await first.fireAt(tick?.tick as Date)).toMatchObject({ outcome: 'passed' })
    expect(await effects(fixture.observer, name)).toEqual([1])
  })
})

test('control: a lock that is only tried runs the same tick in both processes', async () => {
  const name = freshName()
  const run = async (): Promise<void> => {
    const client = await fixture.pool.connect()
    try {
      await client.query('BEGIN')
      const { rows } = await client.query<{ got: boolean }>(
        'SELECT pg_try_advisory_xact_lock(hashtext($1)) AS got',
        [name],
      )
      if (rows[0]?.got === true) {
        await client.query("INSERT INTO effect VALUES ('2026-01-01', $1)", [name])
      }
      await client.query('COMMIT')
    } finally {
      client.release()
    }
  }
  await run()
  await run()
  expect(await effects(fixture.observer, name)).toEqual([2])
})

describe('a process that falls silent', () => {
  test('at most once: the tick is lost, and nobody runs it again', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 1)
    const [started, go] = [deferred<void>(), deferred<void>()]
    const stalled = declare(name, 'at-most-once', {
      before: async () => {
        started.resolve()
        await go.promise
      },
    }).fire()
    await started.promise
    await expireLeases(fixture.observer, name)
    const other = declare(name, 'at-most-once')
    expect(await other.fire()).toMatchObject([{ outcome: 'lost', attempt: 0 }])
    go.resolve()
    expect(await stalled).toMatchObject([{ outcome: 'lost', attempt: 1 }])
    expect(await effects(fixture.observer, name)).toEqual([1])
  })

  test('at least once: another takes over, and the first cannot say that it is done', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 1)
    const [started, go] = [deferred<void>(), deferred<void>()]
    const stalled = declare(name, 'at-least-once', {
      before: async () => {
        started.resolve()
        await go.promise
      },
    }).fire()
    await started.promise
    await expireLeases(fixture.observer, name)
    const other = declare(name, 'at-least-once')
    expect(await other.fire()).toMatchObject([{ outcome: 'done', attempt: 2 }])
    go.resolve()
    expect(await stalled).toMatchObject([{ outcome: 'lost', attempt: 1 }])
    // That is what at least once means.
    expect(await effects(fixture.observer, name)).toEqual([2])
    expect(await other.history()).toMatchObject([{ state: 'done', attempts: 2 }])
  })

  test('at least once: its signal says so as soon as the next renewal finds out', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 1)
    const aborted = deferred<unknown>()
    const started = deferred<void>()
    const stalled = fixture.hf
      .schedule({
        name,
        ...weekly,
        guarantee: 'at-least-once',
        lease: '2 s',
        handler: async ({ signal }) => {
          started.resolve()
          signal.addEventListener('abort', () => aborted.resolve(signal.reason))
          await aborted.promise
        },
      })
      .fire()
    await started.promise
    await expireLeases(fixture.observer, name)
    await declare(name, 'at-least-once').fire()
    expect(await aborted.promise).toMatchObject({ code: 'SCHEDULE_TICK_LOST' })
    await stalled
  })

  test('at least once: a lease that is renewed is not taken over', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 1)
    const [started, go] = [deferred<void>(), deferred<void>()]
    const running = declare(name, 'at-least-once', {
      lease: '2 s',
      before: async () => {
        started.resolve()
        await go.promise
      },
    }).fire()
    await started.promise
    const leaseOf = async (): Promise<string | undefined> => {
      const { rows } = await fixture.observer.query<{ until: string }>(
        'SELECT lease_until::text AS until FROM holdfast.tick WHERE schedule = $1',
        [name],
      )
      return rows[0]?.until
    }
    const before = await leaseOf()
    await waitUntil('it is renewed', async () => ((await leaseOf()) === before ? undefined : true))
    expect(await declare(name, 'at-least-once').fire()).toEqual([])
    go.resolve()
    expect(await running).toMatchObject([{ outcome: 'done' }])
    expect(await effects(fixture.observer, name)).toEqual([1])
  })

  test('transactional: its backend is killed, the next one does the work, all of it once', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 1)
    const started = deferred<number>()
    let runs = 0
    const killed = fixture.hf
      .schedule({
        name,
        ...weekly,
        guarantee: 'transactional',
        handler: async (tx, { at }) => {
          runs += 1
          await tx.query('INSERT INTO effect VALUES ($1, $2)', [at, name])
          // After a lost connection it is run again, and may be faster than the other.
          if (runs > 1) return
          started.resolve(await pidOf(tx))
          await tx.query('SELECT pg_sleep(600)')
        },
      })
      .fire()
    const pid = await started.promise
    // Nobody else gets it as long as it is at work.
    const other = declare(name, 'transactional')
    const waiting = other.fire()
    await fixture.observer.query('SELECT pg_terminate_backend($1)', [pid])
    const outcomes = [...(await waiting), ...(await killed)]
    // Either the other was faster, or the failure was written down and its pause has to end first.
    await expireLeases(fixture.observer, name)
    outcomes.push(...(await other.fire()))
    expect(countOf(outcomes, 'done')).toBe(1)
    expect(await effects(fixture.observer, name)).toEqual([1])
  })
})

describe('guard', () => {
  /** Stalls past its lease while another takes over, then writes. */
  const stallAndWrite = async (
    guarded: boolean,
  ): Promise<{ name: string; stalled: TickOutcome[] }> => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 1)
    const [started, go] = [deferred<void>(), deferred<void>()]
    const stalled = fixture.hf
      .schedule({
        name,
        ...weekly,
        guarantee: 'at-least-once',
        handler: async ({ at, guard }) => {
          started.resolve()
          await go.promise
          await fixture.hf.transaction(async (tx) => {
            if (guarded) await guard(tx)
            await tx.query('INSERT INTO effect VALUES ($1, $2)', [at, name])
          })
        },
      })
      .fire()
    await started.promise
    await expireLeases(fixture.observer, name)
    await declare(name, 'at-least-once').fire()
    go.resolve()
    return { name, stalled: await stalled }
  }

  test('one that was given up cannot write any more', async () => {
    const { name, stalled } = await stallAndWrite(true)
    expect(stalled).toMatchObject([{ outcome: 'lost', error: { code: 'SCHEDULE_TICK_LOST' } }])
    expect(await effects(fixture.observer, name)).toEqual([1])
  })

  test('control: without it, it writes', async () => {
    const { name } = await stallAndWrite(false)
    expect(await effects(fixture.observer, name)).toEqual([2])
  })

  test('whoever wants to take over waits for the transaction that is guarded', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 1)
    const order: string[] = []
    const [guarded, go] = [deferred<void>(), deferred<void>()]
    const first = fixture.hf
      .schedule({
        name,
        ...weekly,
        guarantee: 'at-least-once',
        handler: async ({ guard }) => {
          await expireLeases(fixture.observer, name)
          await fixture.hf.transaction(async (tx) => {
            await guard(tx)
            guarded.resolve()
            await go.promise
            order.push('written')
          })
        },
      })
      .fire()
    await guarded.promise
    const second = declare(name, 'at-least-once', {
      before: async () => void order.push('taken over'),
    }).fire()
    const pid = await waitUntil('somebody waits', async () => {
      const { rows } = await fixture.observer.query<{ pid: number }>(
        `SELECT pid FROM pg_stat_activity WHERE datname = current_database()
         AND query LIKE '%claim_tick%' AND cardinality(pg_blocking_pids(pid)) > 0`,
      )
      return rows[0]?.pid
    })
    await waitUntilBlocked(fixture.observer, pid)
    go.resolve()
    await Promise.all([first, second])
    expect(order[0]).toBe('written')
  })

  test('outside a transaction it is refused', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 1)
    const outcomes = await fixture.hf
      .schedule({
        name,
        ...weekly,
        guarantee: 'at-most-once',
        handler: async ({ guard }) => {
          const client = await fixture.pool.connect()
          await guard(client).finally(() => client.release())
        },
      })
      .fire()
    expect(outcomes).toMatchObject([{ error: { code: 'SCHEDULE_OUTSIDE_TRANSACTION' } }])
  })
})

describe('races over one tick, one step at a time', () => {
  test('whoever holds the schedule lets nobody else take a tick, and nobody waits for it', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 1)
    const holder = await callerTransaction(fixture)
    await holder.query('SELECT FROM holdfast.schedule WHERE name = $1 FOR NO KEY UPDATE', [name])
    const schedule = declare(name, 'at-least-once')
    const { rows } = await fixture.observer.query<{ at: Date }>(
      `SELECT last_tick + interval '7 days' AS at FROM holdfast.schedule WHERE name = $1`,
      [name],
    )
    const fired = schedule.fireAt(rows[0]?.at as Date)
    await holder.query('COMMIT')
    expect(await fired).toMatchObject({ outcome: 'done' })
  })

  test('a pause waits for a transactional tick, and nothing starts after it', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 2)
    const [started, go] = [deferred<void>(), deferred<void>()]
    const schedule = declare(name, 'transactional', {
      missed: { all: 2 },
      before: async () => {
        started.resolve()
        await go.promise
      },
    })
    const firing = schedule.fire()
    await started.promise
    const pausing = schedule.pause()
    await waitUntil('the pause waits', async () => {
      const { rows } = await fixture.observer.query<{ pid: number }>(
        `SELECT pid FROM pg_stat_activity
         WHERE query LIKE '%pause_schedule%' AND cardinality(pg_blocking_pids(pid)) > 0`,
      )
      return rows[0]?.pid
    }).then((pid) => waitUntilBlocked(fixture.observer, pid))
    go.resolve()
    expect(await pausing).toBe(true)
    const outcomes = await firing
    const done = countOf(outcomes, 'done')
    expect(await declare(name, 'transactional').fire()).toEqual([])
    expect((await effects(fixture.observer, name)).length).toBe(done)
  })
})
