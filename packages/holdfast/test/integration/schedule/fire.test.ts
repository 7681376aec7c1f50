import { barrier, deferred, waitUntil } from '@holdfast/testkit'
import cron from 'node-cron'
import { describe, expect, onTestFinished, test } from 'vitest'
import { cronHandler, scheduledTimeOf } from '../../../src/entries/schedule.ts'
import { effects, freshName, scheduleFixture, sleepThrough, weekly } from './schedule-room.ts'

const fixture = scheduleFixture()

async function databaseNow(): Promise<number> {
  const { rows } = await fixture.observer.query<{ ms: string }>(
    'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint::text AS ms',
  )
  return Number(rows[0]?.ms)
}

test('node-cron in three instances: each tick runs once', async () => {
  const name = freshName()
  const instance = (): (() => Promise<unknown>) =>
    fixture.hf.schedule({
      name,
      cron: '* * * * * *',
      guarantee: 'transactional',
      missed: { all: 10 },
      handler: async (tx, { at }) =>
        await tx.query('INSERT INTO effect VALUES ($1, $2)', [at, name]),
    }).fire
  const firing = new Set<Promise<unknown>>()
  const tasks = Array.from({ length: 3 }, () => {
    const fire = instance()
    return cron.schedule('* * * * * *', () => {
      const fired = fire()
      firing.add(fired)
      return fired
    })
  })
  onTestFinished(() => tasks.forEach((task) => void task.stop()))
  await waitUntil('four ticks ran', async () =>
    (await effects(fixture.observer, name)).length >= 4 ? true : undefined,
  )
  for (const task of tasks) await task.stop()
  await Promise.all(firing)
  expect(new Set(await effects(fixture.observer, name))).toEqual(new Set([1]))
  const { rows } = await fixture.observer.query<{ gaps: number }>(
    `SELECT count(*)::int AS gaps FROM (
       SELECT tick - lag(tick) OVER (ORDER BY tick) AS gap FROM effect WHERE what = $1
     ) x WHERE gap <> interval '1 s'`,
    [name],
  )
  expect(rows).toEqual([{ gaps: 0 }])
})

test('a timer that is early waits for its tick; one that is late finds it taken', async () => {
  const name = freshName()
  const ran: Date[] = []
  const early = deferred<void>()
  // A tick two seconds ahead, whenever the test runs: an interval as long as the time since 1970.
  const at = Math.ceil((await databaseNow()) / 1_000) * 1_000 + 2_000
  const declare = (): ReturnType<typeof fixture.hf.schedule> =>
    fixture.hf.schedule({
      name,
      every: at,
      guarantee: 'at-most-once',
      handler: (tick) => ran.push(tick.at),
    })
  const firing = declare()
    .fire()
    .finally(() => early.resolve())
  expect(await firing).toMatchObject([{ outcome: 'done', at: new Date(at) }])
  await early.promise
  expect(await declare().fire()).toEqual([])
  expect(ran).toEqual([new Date(at)])
})

describe('a request that carries its scheduled time', () => {
  const declared = (name: string, ran: Date[] = []) =>
    fixture.hf.schedule({ name, guarantee: 'at-least-once', handler: ({ at }) => ran.push(at) })

  test('however often it comes, the tick runs once', async () => {
    const name = freshName()
    const ran: Date[] = []
    const at = new Date((await databaseNow()) - 1_000)
    const together = barrier(5)
    const outcomes = await Promise.all(
      Array.from({ length: 5 }, async () => {
        const schedule = declared(name, ran)
        await together()
        return (await schedule.fireAt(at)).outcome
      }),
    )
    expect(outcomes.filter((outcome) => outcome === 'done')).toHaveLength(1)
    expect(ran).toEqual([at])
    expect(['taken', 'passed']).toContain((await declared(name, ran).fireAt(at)).outcome)
  })

  test('a later one passes those before it', async () => {
    const schedule = declared(freshName())
    const now = await databaseNow()
    expect(await schedule.fireAt(now - 1_000)).toMatchObject({ outcome: 'done' })
    expect(await schedule.fireAt(new Date(now - 2_000))).toMatchObject({ outcome: 'passed' })
  })

  test('with a rule, what lies between two ticks is the earlier one', async () => {
    const ran: Date[] = []
    const schedule = fixture.hf.schedule({
      name: freshName(),
      cron: '0 3 * * *',
      timeZone: 'America/Santiago',
      guarantee: 'at-most-once',
      handler: ({ at }) => ran.push(at),
    })
    expect(await schedule.fireAt('2026-05-04T07:00:03.123Z')).toMatchObject({ outcome: 'done' })
    expect(ran).toEqual([new Date('2026-05-04T07:00:00Z')])
    expect(await schedule.fireAt('2026-05-04T07:00:09Z')).toMatchObject({ outcome: 'taken' })
  })

  test('a little early it waits; far ahead it is refused', async () => {
    const schedule = declared(freshName())
    const at = (await databaseNow()) + 300
    expect(await schedule.fireAt(at)).toMatchObject({ outcome: 'done', at: new Date(at) })
    expect(await databaseNow()).toBeGreaterThanOrEqual(at)
    await expect(schedule.fireAt(at + 600_000)).rejects.toMatchObject({
      code: 'SCHEDULE_TOO_EARLY',
    })
    await expect(schedule.fireAt('soon')).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })

  test('without a rule there is nothing to wait for', async () => {
    expect(() => declared(freshName()).start()).toThrow(/OPTION_INVALID/)
    await expect(declared(freshName()).fire()).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })
})

describe('cronHandler', () => {
  const request = (headers: Record<string, string>): Request =>
    new Request('https://shop/cron', { method: 'POST', headers })

  test('reads what the platforms send, or where it is told to look', async () => {
    const time = '2026-05-04T03:00:00Z'
    expect(scheduledTimeOf(request({ 'X-CloudScheduler-ScheduleTime': time }))).toBe(time)
    expect(scheduledTimeOf(request({ 'ce-time': time }))).toBe(time)
    expect(scheduledTimeOf(request({}))).toBeUndefined()
    const schedule = fixture.hf.schedule({
      name: freshName(),
      guarantee: 'at-most-once',
      handler: () => undefined,
    })
    const answer = await cronHandler(schedule)(request({ 'ce-time': time }))
    expect([answer.status, await answer.json()]).toEqual([200, { outcome: 'done', attempt: 1 }])
    const again = await cronHandler(schedule, { scheduledAt: () => time })(request({}))
    expect([again.status, await again.json()]).toEqual([200, { outcome: 'taken', attempt: 0 }])
    await expect(cronHandler(schedule)(request({}))).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
  })

  test('asks the platform to try again where that helps', async () => {
    const schedule = fixture.hf.schedule({
      name: freshName(),
      guarantee: 'at-least-once',
      handler: () => {
        throw new Error('not yet')
      },
    })
    const answer = await cronHandler(schedule, { scheduledAt: () => 0 })(request({}))
    expect([answer.status, await answer.json()]).toEqual([503, { outcome: 'waiting', attempt: 1 }])
  })
})

test('fire resolves when what it began has ended, also where overlap is allowed', async () => {
  const name = freshName()
  await sleepThrough(fixture.observer, name, 1)
  const end = deferred<void>()
  let ended = false
  const fired = fixture.hf
    .schedule({
      name,
      ...weekly,
      guarantee: 'at-least-once',
      overlap: 'allow',
      handler: async () => await end.promise,
    })
    .fire()
    .then(() => {
      ended = true
    })
  await waitUntil('it is at work', async () => {
    const { rowCount } = await fixture.observer.query(
      "SELECT FROM holdfast.ticks WHERE schedule = $1 AND state = 'running'",
      [name],
    )
    return rowCount === 1 ? true : undefined
  })
  expect(ended).toBe(false)
  end.resolve()
  await fired
})
