import { describe, expect, test } from 'vitest'
import { Attempts } from '../../../../holdfast/src/schedule/attempt.ts'
import type { ScheduleOptions } from '../../../../holdfast/src/entries/schedule.ts'
import { settingsOf } from '../../../../holdfast/src/schedule/options.ts'
import { TickBoard } from '../../../../holdfast/src/engines/postgres/schedule/tick-board.ts'
import type { Flow, FlowContext } from '../../../src/run/options.ts'
import { patienceMs } from './expectations.ts'
import type { Tx } from './ledger-stage.ts'
import { ownDriver, type Room, roomStage } from './room-stage.ts'
import { withoutTickLocks } from './weakened.ts'

/** Ticks one attempt at a time: `start` and `fire` look again by the clock. */
const room: Room = {
  tables: 'CREATE TABLE effect (tick timestamptz NOT NULL)',
  rows: `
    TRUNCATE effect; DELETE FROM holdfast.tick; DELETE FROM holdfast.schedule;
    INSERT INTO holdfast.schedule (bucket, name, last_tick)
    VALUES (holdfast.bucket_of('nightly'), 'nightly', '2026-01-01T00:00:00Z')`,
  compared: {
    tables: ['effect', 'holdfast.tick', 'holdfast.schedule'],
    ignore: [
      'tick.token',
      'tick.started_at',
      'tick.finished_at',
      'tick.lease_until',
      'schedule.registered_at',
    ],
  },
}
const night = (day: number): number => Date.UTC(2026, 0, day, 3) * 1_000

type Guarantee = ScheduleOptions<Tx>['guarantee']

function optionsFor(cx: FlowContext, guarantee: Guarantee): ScheduleOptions<Tx> {
  const common = { name: 'nightly', cron: '0 3 * * *' } as const
  const effect = 'INSERT INTO effect VALUES ($1)'
  if (guarantee === 'transactional') {
    return {
      ...common,
      guarantee,
      attempts: 1,
      handler: async (tx, { at }) => void (await tx.query(effect, [at])),
    }
  }
  const apart = {
    ...common,
    lease: '1 h' as const,
    handler: async ({ at }: { at: Date }) => void (await cx.pool.query(effect, [at])),
  }
  return guarantee === 'at-most-once'
    ? { ...apart, guarantee }
    : { ...apart, guarantee, attempts: 1 }
}

/** One attempt at a tick. Who finds the schedule locked, or another tick at work, comes again later. */
const ticking =
  (guarantee: Guarantee, day = 2): Flow =>
  async (cx) => {
    const driver = ownDriver(cx)
    const settings = settingsOf(optionsFor(cx, guarantee), 'holder')
    const attempts = new Attempts(driver, new TickBoard(driver, 'holdfast', 10_000), settings)
    const result = await attempts.run({ atUs: night(day), manual: false })
    if (!('outcome' in result) || result.outcome === 'busy') throw new Error('busy')
    return result.outcome
  }

describe('tick and tick', () => {
  const explored = roomStage(room)

  test(
    'transactional',
    async () => {
      const flows = { a: ticking('transactional'), b: ticking('transactional') }
      expect(await explored(flows)).toBeExhausted({ classes: 8, schedules: 14 })
    },
    patienceMs,
  )

  test(
    'transactional, three of them',
    async () => {
      const flows = {
        a: ticking('transactional'),
        b: ticking('transactional'),
        c: ticking('transactional'),
      }
      const report = await explored(flows, { symmetric: true })
      expect(report).toBeExhausted({ classes: 18, schedules: 36 })
    },
    patienceMs,
  )

  test(
    'at least once, where nobody dies',
    async () => {
      const flows = { a: ticking('at-least-once'), b: ticking('at-least-once') }
      expect(await explored(flows)).toBeExhausted({ classes: 10, schedules: 16 })
    },
    patienceMs,
  )

  test(
    'at most once',
    async () => {
      const flows = { a: ticking('at-most-once'), b: ticking('at-most-once') }
      expect(await explored(flows)).toBeExhausted({ classes: 10, schedules: 16 })
    },
    patienceMs,
  )

  describe('control', () => {
    const weakened = roomStage(room, withoutTickLocks)

    test(
      'without the lock and the unique tick it runs twice',
      async () => {
        const flows = { a: ticking('transactional'), b: ticking('transactional') }
        expect(await weakened(flows)).toBeCaught()
      },
      patienceMs,
    )
  })
})
