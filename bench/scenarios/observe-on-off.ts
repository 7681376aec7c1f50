import { randomUUID } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { type EventName, createMetrics } from '../../packages/holdfast/src/observe/index.ts'
import type { Duration } from '../../packages/holdfast/src/core/options/duration.ts'
import { channels } from '../../packages/holdfast/src/core/events.ts'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast, lockKey } from '../../packages/holdfast/src/index.ts'
import type { Contest } from '../harness/compare.ts'
import { openPool } from '../harness/open-pool.ts'

const guards = 16
const callers = 512
/** What the promise is. */
const bar = 0.97

/** Every one but the one of each single ledger operation, which is for who wants each. */
const apart: EventName = 'ledger.operation'

/** Everything that listens inside a process, switched on for a slice. */
async function everythingOn(
  hf: ReturnType<typeof createHoldfast>,
  every: Duration,
): Promise<() => Promise<void>> {
  const listen = (): void => undefined
  const names = Object.values(channels)
    .map(({ name }) => String(name))
    .filter((name) => name !== `holdfast:${apart}`)
  for (const name of names) subscribe(name, listen)
  const metrics = createMetrics()
  const recorder = await hf.observe.record({ every })
  return async () => {
    await recorder.stop()
    metrics.stop()
    for (const name of names) unsubscribe(name, listen)
  }
}

/**
 * The same operations with everything on that listens inside the process, and with nothing. `every` is
 * how often names and minutes are written meanwhile.
 */
export async function onOffContests(
  url: string,
  every: Duration,
): Promise<readonly (Contest & AsyncDisposable)[]> {
  const pool = await openPool(url, guards)
  const hf = createHoldfast(fromPg(pool))
  const quota = hf.quota({ name: 'bench', limit: 1_000_000_000_000, per: 'lifetime' })
  const scene = (): Promise<() => Promise<void>> => everythingOn(hf as never, every)
  const contest = (
    name: string,
    workers: number,
    label: string,
    operation: () => Promise<unknown>,
  ): Contest => ({
    name,
    bar,
    workers,
    measured: { label: `${label}; events, metrics and recorder on`, operation, scene },
    baseline: { label: `${label}; nobody listens`, operation },
  })
  const end = { [Symbol.asyncDispose]: async () => await pool.end() }
  const idle = { [Symbol.asyncDispose]: async () => {} }
  return [
    {
      ...contest('on_vs_off_guard', guards, 'guard, one random key', async () => {
        await hf.guard(lockKey('bench', randomUUID()), async () => undefined)
      }),
      ...idle,
    },
    {
      ...contest('on_vs_off_consume', callers, `consume, ${callers} callers, one key`, () =>
        quota.consume('hot', 1, { operationId: randomUUID() }),
      ),
      ...end,
    },
  ]
}
