import { once } from 'node:events'
import { deferred, waitUntil } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import type { RunningSchedule, Tick, TickOutcome } from '../../../src/entries/schedule.ts'
import { eventsOn } from '../../support/pg-fixture.ts'
import { expireLeases, freshName, scheduleFixture, sleepThrough, weekly } from './schedule-room.ts'

const fixture = scheduleFixture()

/** A handler that says when it has begun and ends when it is told to. */
function stalling(): {
  handler: () => Promise<void>
  begun: Promise<void>
  end: () => void
  runs: () => number
} {
  const [begun, ended] = [deferred<void>(), deferred<void>()]
  let runs = 0
  return {
    handler: async () => {
      runs += 1
      begun.resolve()
      await ended.promise
    },
    begun: begun.promise,
    end: () => ended.resolve(),
    runs: () => runs,
  }
}

/** Moves the beginning of what is at work before the latest tick, as if it had been long at it. */
async function beganBefore(name: string): Promise<void> {
  await fixture.observer.query(
    `UPDATE holdfast.tick SET started_at = at WHERE schedule = $1 AND state = 0`,
    [name],
  )
}

describe('overlap', () => {
  const declared = { ...weekly, guarantee: 'at-least-once', missed: { all: 1 } } as const

  test('skip: a tick that comes while another is at work is dropped, and the history says so', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 1)
    const slow = stalling()
    const schedule = fixture.hf.schedule({ ...declared, name, handler: slow.handler })
    await sleepThrough(fixture.observer, name, 2)
    // The one before the latest is at work.
    const { rows } = await fixture.observer.query<{ at: Date }>(
      `SELECT last_tick + interval '7 days' AS at FROM holdfast.schedule WHERE name = $1`,
      [name],
    )
    const first = schedule.fireAt(rows[0]?.at as Date)
    await slow.begun
    await beganBefore(name)
    expect(await schedule.fire()).toMatchObject([{ outcome: 'skipped', attempt: 0 }])
    slow.end()
    expect(await first).toMatchObject({ outcome: 'done' })
    expect(slow.runs()).toBe(1)
    expect(await schedule.history()).toMatchObject([{ state: 'skipped' }, { state: 'done' }])
  })

  test('skip: also when the other has ended before anybody looked', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 2)
    const schedule = fixture.hf.schedule({ ...declared, name, handler: () => undefined })
    const { rows } = await fixture.observer.query<{ at: Date }>(
      `SELECT last_tick + interval '7 days' AS at FROM holdfast.schedule WHERE name = $1`,
      [name],
    )
    await schedule.fireAt(rows[0]?.at as Date)
    await fixture.observer.query('UPDATE holdfast.tick SET started_at = at WHERE schedule = $1', [
      name,
    ])
    expect(await schedule.fire()).toMatchObject([{ outcome: 'skipped' }])
  })

  test('wait: it begins when the other has ended', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 2)
    const slow = stalling()
    const schedule = fixture.hf.schedule({
      ...declared,
      missed: { all: 2 },
      overlap: 'wait',
      name,
      handler: slow.handler,
    })
    const [one, other] = [schedule.fire(), schedule.fire()]
    await slow.begun
    await beganBefore(name)
    expect(slow.runs()).toBe(1)
    slow.end()
    const outcomes = [...(await one), ...(await other)].map(({ outcome }) => outcome)
    expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(2)
  })

  test('allow: both are at work at once', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 2)
    const slow = stalling()
    const schedule = fixture.hf.schedule({
      ...declared,
      missed: { all: 2 },
      overlap: 'allow',
      name,
      handler: slow.handler,
    })
    const fired = schedule.fire()
    await waitUntil('both are at work', () => (slow.runs() === 2 ? true : undefined))
    slow.end()
    await fired
    expect(await schedule.history()).toMatchObject([{ state: 'done' }, { state: 'done' }])
  })
})

describe('missed ticks', () => {
  test('skip: too late, passed over, counted', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 4)
    const schedule = fixture.hf.schedule({
      ...weekly,
      name,
      guarantee: 'transactional',
      missed: 'skip',
      handler: () => {
        throw new Error('never')
      },
    })
    expect(await schedule.fire()).toMatchObject([{ outcome: 'skipped' }])
    expect(await schedule.history()).toMatchObject([{ state: 'skipped', missed: 3 }])
    expect(await schedule.fire()).toEqual([])
  })

  test('latest: one run for all of them', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 4)
    const late: number[] = []
    const schedule = fixture.hf.schedule({
      ...weekly,
      name,
      guarantee: 'at-most-once',
      handler: ({ lateMs }) => late.push(lateMs),
    })
    await schedule.fire()
    expect(late).toEqual([expect.any(Number)])
    expect(await schedule.history()).toMatchObject([{ state: 'done', missed: 3 }])
  })

  test('a schedule that is new owes nothing of the past', async () => {
    const schedule = fixture.hf.schedule({
      ...weekly,
      name: freshName(),
      guarantee: 'at-most-once',
      missed: { all: 100 },
      handler: () => undefined,
    })
    expect(await schedule.fire()).toEqual([])
  })
})

describe('failures', () => {
  test('at most once: failed, and that is it', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 1)
    const events = eventsOn<TickOutcome>('holdfast:schedule.tick')
    const schedule = fixture.hf.schedule({
      ...weekly,
      name,
      guarantee: 'at-most-once',
      handler: () => {
        throw new TypeError('broken')
      },
    })
    expect(await schedule.fire()).toMatchObject([{ outcome: 'failed', attempt: 1 }])
    expect(await schedule.fire()).toEqual([])
    expect(await schedule.history()).toMatchObject([
      { state: 'failed', error: 'TypeError: broken' },
    ])
    expect(events).toMatchObject([{ schedule: name, outcome: 'failed' }])
  })

  test.each(['at-least-once', 'transactional'] as const)(
    '%s: tried again as often as allowed, and then no more',
    async (guarantee) => {
      const name = freshName()
      await sleepThrough(fixture.observer, name, 1)
      let runs = 0
      const schedule = fixture.hf.schedule({
        ...weekly,
        name,
        guarantee,
        attempts: 3,
        handler: async () => {
          runs += 1
          throw new Error(`attempt ${runs}`)
        },
      })
      const outcomes: TickOutcome[] = []
      for (let at = 0; at < 5; at += 1) {
        outcomes.push(...(await schedule.fire()))
        await expireLeases(fixture.observer, name)
      }
      expect(outcomes).toMatchObject([
        { outcome: 'waiting', attempt: 1 },
        { outcome: 'waiting', attempt: 2 },
        { outcome: 'failed', attempt: 3 },
      ])
      expect(runs).toBe(3)
      expect(await schedule.history()).toMatchObject([
        { state: 'failed', error: 'Error: attempt 3' },
      ])
    },
  )

  test('transactional: what a failed attempt wrote is not there', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 1)
    let runs = 0
    const schedule = fixture.hf.schedule({
      ...weekly,
      name,
      guarantee: 'transactional',
      handler: async (tx, { at, attempt }) => {
        runs += 1
        await tx.query('INSERT INTO effect VALUES ($1, $2, $3)', [at, name, String(attempt)])
        if (runs < 3) throw new Error('too early')
      },
    })
    for (let at = 0; at < 3; at += 1) {
      await schedule.fire()
      await expireLeases(fixture.observer, name)
    }
    const { rows } = await fixture.observer.query('SELECT by FROM effect WHERE what = $1', [name])
    expect(rows).toEqual([{ by: '3' }])
  })

  test('transactional: longer than its deadline is a failure', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 1)
    const schedule = fixture.hf.schedule({
      ...weekly,
      name,
      guarantee: 'transactional',
      attempts: 1,
      deadline: '300 ms',
      handler: async (tx) => await tx.query('SELECT pg_sleep(60)'),
    })
    expect(await schedule.fire()).toMatchObject([
      { outcome: 'failed', error: { code: 'TX_DEADLINE' } },
    ])
  })
})

describe('by hand', () => {
  test('runNow runs beside the schedule, also while it is paused, and takes no tick', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 1)
    const ran: boolean[] = []
    const schedule = fixture.hf.schedule({
      ...weekly,
      name,
      guarantee: 'at-least-once',
      handler: ({ manual }) => ran.push(manual),
    })
    expect(await schedule.pause()).toBe(true)
    expect(await schedule.pause()).toBe(false)
    expect(await schedule.runNow()).toMatchObject({ outcome: 'done', manual: true })
    expect(await schedule.fire()).toEqual([])
    expect(ran).toEqual([true])
  })

  test('while another is at work it says so', async () => {
    const name = freshName()
    const slow = stalling()
    const schedule = fixture.hf.schedule({
      ...weekly,
      name,
      guarantee: 'at-least-once',
      handler: slow.handler,
    })
    const first = schedule.runNow()
    await slow.begun
    expect(await schedule.runNow()).toMatchObject({ outcome: 'busy', at: undefined })
    slow.end()
    await first
  })

  test('paused, nothing is due; resumed, what fell into the pause is passed over', async () => {
    const name = freshName()
    await sleepThrough(fixture.observer, name, 3)
    let runs = 0
    const schedule = fixture.hf.schedule({
      ...weekly,
      name,
      guarantee: 'transactional',
      missed: { all: 10 },
      handler: () => {
        runs += 1
      },
    })
    await schedule.pause()
    expect(await schedule.fire()).toEqual([])
    expect(await schedule.resume()).toBe(true)
    expect(await schedule.resume()).toBe(false)
    expect(await schedule.fire()).toEqual([])
    expect(runs).toBe(0)
  })
})

test('the history keeps what it was told to keep', async () => {
  const name = freshName()
  await sleepThrough(fixture.observer, name, 12)
  const schedule = fixture.hf.schedule({
    ...weekly,
    name,
    guarantee: 'at-least-once',
    missed: { all: 12 },
    keep: 5,
    handler: () => undefined,
  })
  expect(await schedule.fire()).toHaveLength(12)
  const history = await schedule.history({ limit: 100 })
  expect(history).toHaveLength(5)
  expect(history.map(({ at }) => at.getTime())).toEqual(
    history.map(({ at }) => at.getTime()).toSorted((left, right) => right - left),
  )
})

test('start: ticks come by themselves, and stop waits for the one at work', async () => {
  const name = freshName()
  const ran: Date[] = []
  const slow = deferred<void>()
  const running = fixture.hf
    .schedule({
      name,
      every: '200 ms',
      guarantee: 'transactional',
      missed: { all: 100 },
      // Or a tick that a busy machine makes long would drop the next one, as it should.
      overlap: 'wait',
      handler: async (_, { at }) => {
        ran.push(at)
        if (ran.length === 5) await slow.promise
      },
    })
    .start()
  await waitUntil('five have begun', () => (ran.length === 5 ? true : undefined))
  let stopped = false
  const stopping = running.stop().then(() => {
    stopped = true
  })
  expect(stopped).toBe(false)
  slow.resolve()
  await stopping
  expect(ran).toHaveLength(5)
  for (const [index, at] of ran.entries()) {
    expect(at.getTime() - (ran[0] as Date).getTime()).toBe(index * 200)
  }
})

describe('stop, after its time', () => {
  /** The state of a tick that failed and is tried again. */
  const waiting = 1
  const started = (
    handler: (tick: Tick) => Promise<void>,
    guarantee: 'at-least-once' | 'transactional' = 'at-least-once',
  ): { name: string; running: RunningSchedule } => {
    const name = freshName()
    const run = (tick: Tick): Promise<void> => handler(tick)
    const common = { name, every: '200 ms', attempts: 3 } as const
    const schedule =
      guarantee === 'transactional'
        ? fixture.hf.schedule({ ...common, guarantee, handler: (_tx, tick) => run(tick) })
        : fixture.hf.schedule({ ...common, guarantee, lease: '2 s', handler: run })
    return { name, running: schedule.start() }
  }
  const lastOf = async (name: string): Promise<unknown> => {
    const { rows } = await fixture.observer.query<{ state: number }>(
      'SELECT state FROM holdfast.tick WHERE schedule = $1 ORDER BY at DESC LIMIT 1',
      [name],
    )
    return rows[0]?.state
  }

  test.each(['at-least-once', 'transactional'] as const)(
    '%s: a handler is told, and one that rejects is tried again',
    async (guarantee) => {
      const signals: AbortSignal[] = []
      const { name, running } = started(async ({ signal }) => {
        signals.push(signal)
        await once(signal, 'abort')
        throw signal.reason
      }, guarantee)
      await waitUntil('it runs', () => signals.length === 1 || undefined)
      expect(await running.stop({ within: 10 })).toEqual({ left: 0 })
      expect(signals[0]?.reason).toMatchObject({ code: 'SCHEDULE_STOPPED' })
      expect(await lastOf(name)).toBe(waiting)
    },
  )

  test('one that does not heed it is left, and its tick is not kept for it', async () => {
    const troubles = eventsOn<{ schedule: string; error: unknown }>('holdfast:schedule.trouble')
    const open = deferred<void>()
    let begun = 0
    const { name, running } = started(async () => {
      begun += 1
      await open.promise
    })
    await waitUntil('it runs', () => begun === 1 || undefined)
    expect(await running.stop({ within: 10, leaveAfter: 10 })).toEqual({ left: 1 })
    expect(troubles).toMatchObject([{ schedule: name, error: { code: 'SCHEDULE_STOPPED' } }])
    await waitUntil('its lease is over', async () => {
      const { rows } = await fixture.observer.query<{ over: boolean }>(
        'SELECT lease_until < clock_timestamp() AS over FROM holdfast.tick WHERE schedule = $1',
        [name],
      )
      return rows[0]?.over === true || undefined
    })
    open.resolve()
  })
})

test('a database that cannot be asked is a trouble, and it goes on', async () => {
  const events = eventsOn<{ schedule: string; error: unknown }>('holdfast:schedule.trouble')
  const name = freshName()
  const { hf } = { hf: fixture.create({ schedule: { schema: 'nowhere' } }) }
  const running = hf
    .schedule({ name, every: '1 s', guarantee: 'at-most-once', handler: () => undefined })
    .start()
  await waitUntil('it was tried twice', () => (events.length > 1 ? true : undefined))
  await running.stop()
  expect(events[0]).toMatchObject({ schedule: name, error: { code: 'SCHEMA_MISSING' } })
})

describe('what cannot work is refused', () => {
  const common = {
    name: 'x',
    ...weekly,
    guarantee: 'at-least-once',
    handler: () => undefined,
  } as const

  test.each([
    ['name', { name: '' }],
    ['guarantee', { guarantee: 'exactly-once' }],
    ['overlap', { overlap: 'queue' }],
    ['overlap', { guarantee: 'transactional', overlap: 'allow' }],
    ['missed', { missed: 'all' }],
    ['missed.all', { missed: { all: 0 } }],
    ['lease', { lease: '1 s' }],
    ['attempts', { attempts: 0 }],
    ['keep', { keep: 1.5 }],
    ['holder', { holder: 'a\0' }],
  ])('%s: %o', (option, wrong) => {
    expect(() => fixture.hf.schedule({ ...common, ...wrong } as never)).toThrow(
      expect.objectContaining({ details: expect.objectContaining({ option }) }),
    )
  })
})
