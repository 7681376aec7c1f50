import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import type { Actor, Stage } from '../crew/actor.ts'
import type { ScheduleOptions, TickOutcome } from '../../packages/holdfast/src/entries/schedule.ts'
import { scheduleName, tickMs } from './schedules-table.ts'

/** This one leaves it to the library's own timer; the others fire it as a cron of somebody else would. */
const runnerIndex = 2
const leaveMs = 3_000

/** Ticks whose effect is written in their own transaction: once each, whoever runs them. */
export const schedulesActor: Actor = {
  workload: 'schedules',
  copies: 1,
  async act<Tx>(stage: Stage<Tx>) {
    const { app, recorder, stopping, pace } = stage
    const options: ScheduleOptions<Tx> = {
      name: scheduleName,
      every: tickMs,
      guarantee: 'transactional',
      overlap: 'wait',
      missed: { all: 10_000 },
      attempts: 10_000,
      retryAfter: '100 ms',
      keep: 10_000,
      handler: async (tx, { at, attempt }) => {
        await app.query(
          tx,
          'INSERT INTO tick_effect (tick, attempt) VALUES ($1::timestamptz, $2::int)',
          [at.toISOString(), attempt],
        )
      },
    }
    const schedule = app.hf.schedule(options)
    // Tick by tick, as they end: whoever fires goes on for as long as something is due.
    using _ticks = heard((at) => {
      void recorder.attempt({ operation: 'tick', key: scheduleName }, async () => ({
        outcome: 'ok',
        value: [{ at: at?.toISOString(), outcome: 'done' }],
      }))
    })
    if (stage.index === runnerIndex) {
      const running = schedule.start()
      await aborted(stopping)
      await running.stop({ within: '3 s', leaveAfter: '1 s' })
      return
    }
    const left = leaving(stopping)
    while (!stopping.aborted) {
      await recorder.attempt({ operation: 'fire', key: scheduleName }, async () => {
        const outcomes = await Promise.race([schedule.fire(), left])
        const value = outcomes.map(({ at, outcome }) => ({ at: at?.toISOString(), outcome }))
        // Nothing to do is no progress.
        const ran = outcomes.some(({ outcome }) => outcome === 'done')
        return { outcome: ran ? 'ok' : 'refused', value }
      })
      await pace()
    }
  },
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}

/** Who is to stop does not wait until all is caught up with that fell due in a long outage. */
function leaving(stopping: AbortSignal): Promise<never> {
  const left = aborted(stopping).then(async () => {
    await pause(leaveMs)
    throw new DOMException('left what is still due to others', 'AbortError')
  })
  left.catch(() => undefined)
  return left
}

/** Ticks of this process that were done, by the library's own event. */
function heard(done: (at: Date | undefined) => void): Disposable {
  const channel = 'holdfast:schedule.tick'
  const listener = (message: unknown): void => {
    const { at, outcome } = message as TickOutcome
    if (outcome === 'done') done(at)
  }
  subscribe(channel, listener)
  return { [Symbol.dispose]: () => void unsubscribe(channel, listener) }
}
