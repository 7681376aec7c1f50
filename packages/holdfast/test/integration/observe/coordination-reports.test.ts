/** Leases and schedules as an observer tells them, and what may be done about schedules from outside. */
import { waitUntil } from '@holdfast/testkit'
import { beforeAll, describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createInterventions, type Interventions } from '../../../src/observe/intervene.ts'
import type { ObservedSchedule } from '../../../src/observe/model.ts'
import type { Reports } from '../../../src/observe/reports.ts'
import { appRole } from '../../support/app-role.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { reportsOn } from '../../support/reports.ts'

const fixture = ledgerFixture()
const role = appRole(fixture)
let reports: Reports
let interventions: Interventions

beforeAll(() => {
  reports = reportsOn(fromPg(role.pool))
  interventions = createInterventions(fromPg(role.pool))
})

async function scheduleNamed(name: string): Promise<ObservedSchedule | undefined> {
  return (await reports.schedules()).find((schedule) => schedule.name === name)
}

test('leases: the held first, without what would release them', async () => {
  const [held, free] = [`b-${fresh()}`, `a-${fresh()}`]
  const lease = await fixture.hf.leases.acquire(held, { note: 'host 7' })
  await (await fixture.hf.leases.acquire(free)).release()
  const leases = await reports.leases()
  expect(leases).toMatchObject([
    { name: held, held: true, note: 'host 7', token: String(lease.token) },
    { name: free, held: false },
  ])
  expect(JSON.stringify(leases)).not.toContain('owner')
  expect(await reports.leases({ limit: 1 })).toHaveLength(1)
  await lease.release()
})

describe('a schedule', () => {
  test('tells its rule, its last tick and the next, and what became of its ticks', async () => {
    const name = fresh()
    let broken = false
    const nightly = fixture.hf.schedule({
      name,
      cron: '0 3 * * *',
      timeZone: 'America/Santiago',
      guarantee: 'at-most-once',
      handler: () => {
        if (broken) throw new Error('no disk')
      },
    })
    await nightly.fire()
    const before = await scheduleNamed(name)
    expect(before).toMatchObject({
      rule: 'cron 0 3 * * * (America/Santiago)',
      paused: false,
      advice: [],
      ticks: [],
    })
    // It was started, and has had no tick.
    expect(before?.lastTick).toBeUndefined()
    expect(new Date(before?.next as string).getTime()).toBeGreaterThan(Date.now() - 86_400_000)
    await nightly.runNow()
    const after = await scheduleNamed(name)
    expect(after).toMatchObject({
      lastTick: after?.ticks[0]?.at,
      ticks: [{ state: 'done', manual: true, attempt: 1 }],
      advice: [],
    })
    broken = true
    await nightly.runNow()
    expect(await scheduleNamed(name)).toMatchObject({
      ticks: [{ state: 'failed', error: 'Error: no disk' }, { state: 'done' }],
      advice: [{ code: 'schedule-failed' }],
    })
  })

  test('that nobody runs is late, until somebody does or it is paused', async () => {
    const name = fresh()
    const minutely = fixture.hf.schedule({
      name,
      every: '1 min',
      guarantee: 'at-least-once',
      handler: () => undefined,
    })
    await minutely.fire()
    expect(await scheduleNamed(name)).toMatchObject({ rule: 'every 1 min', advice: [] })
    await fixture.observer.query(
      `UPDATE holdfast.schedule SET last_tick = last_tick - interval '1 hour' WHERE name = $1`,
      [name],
    )
    const late = await scheduleNamed(name)
    expect(late?.advice).toMatchObject([{ code: 'schedule-late' }])
    expect(late?.lateMs).toBeGreaterThan(3_400_000)
    await interventions.pauseSchedule(name)
    const paused = await scheduleNamed(name)
    expect(paused).toMatchObject({ paused: true, advice: [] })
    expect(paused?.next).toBeUndefined()
    expect(paused?.lateMs).toBeUndefined()
    await interventions.resumeSchedule(name)
    await minutely.fire()
    expect(await scheduleNamed(name)).toMatchObject({ paused: false, advice: [] })
  })

  test('whose running tick nobody renews is told', async () => {
    const name = fresh()
    await fixture.observer.query(
      `INSERT INTO holdfast.schedule (bucket, name, last_tick) VALUES (holdfast.bucket_of($1), $1, now());
      `.trim(),
      [name],
    )
    const tick = (until: string): Promise<unknown> =>
      fixture.observer.query(
        `INSERT INTO holdfast.tick (bucket, schedule, at, manual, state, attempt, token, holder, lease_until, started_at)
         VALUES (holdfast.bucket_of($1), $1, now(), false, 0, 1, gen_random_uuid(), 'h:1', now() + $2::interval, now())
         ON CONFLICT (bucket, schedule, at, manual) DO NOTHING`,
        [name, until],
      )
    await tick('1 minute')
    expect(await scheduleNamed(name)).toMatchObject({ running: 1, advice: [] })
    await fixture.observer.query(
      `UPDATE holdfast.tick SET lease_until = now() - interval '1 minute' WHERE schedule = $1`,
      [name],
    )
    expect(await scheduleNamed(name)).toMatchObject({
      advice: [{ code: 'schedule-late', what: expect.stringContaining('not renewed') }],
    })
  })

  test.each(['at-most-once', 'at-least-once', 'transactional'] as const)(
    'is run by request in the process that has the handler: %s',
    async (guarantee) => {
      const name = fresh()
      const ran: boolean[] = []
      const schedule = fixture.hf.schedule({
        name,
        every: '7 days',
        guarantee,
        handler: (...args: { readonly manual?: boolean }[]) =>
          void ran.push(args.at(-1)?.manual === true),
      } as never)
      await schedule.fire()
      const first = await interventions.requestTick(name, 'an operator')
      const again = await interventions.requestTick(name)
      expect(again).toEqual(first)
      expect(await scheduleNamed(name)).toMatchObject({
        waiting: 1,
        ticks: [{ state: 'waiting', manual: true, attempt: 0, holder: 'an operator' }],
      })
      await schedule.fire()
      expect(ran).toEqual([true])
      await schedule.fire()
      expect(ran).toEqual([true])
      expect(await scheduleNamed(name)).toMatchObject({
        waiting: 0,
        ticks: [{ state: 'done', manual: true, attempt: 1 }],
      })
    },
  )

  test('that is paused still runs by request, in a process that was started', async () => {
    const name = fresh()
    let ran = 0
    const schedule = fixture.hf.schedule({
      name,
      every: '7 days',
      guarantee: 'at-least-once',
      handler: () => {
        ran += 1
      },
    })
    await schedule.pause()
    await interventions.requestTick(name)
    const running = schedule.start()
    await waitUntil('the tick has run', async () => (ran === 1 ? true : undefined))
    await running.stop()
    expect(ran).toBe(1)
  })

  test('of a name that nobody started is refused, and not made', async () => {
    const name = fresh()
    const calls = [
      () => interventions.pauseSchedule(name),
      () => interventions.resumeSchedule(name),
      () => interventions.requestTick(name),
    ]
    for (const call of calls) {
      await expect(call()).rejects.toMatchObject({ code: 'OBSERVE_NO_SUCH_SCHEDULE' })
    }
    expect(await scheduleNamed(name)).toBeUndefined()
    const nowhere = createInterventions(fromPg(role.pool), { schema: 'nowhere' })
    await expect(nowhere.pauseSchedule(name)).rejects.toMatchObject({ code: 'SCHEMA_MISSING' })
  })
})
