import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../packages/holdfast/src/index.ts'
import type { FactTable } from '../harness/bench-scenario.ts'
import type { Comparison } from '../harness/compare.ts'
import { openPool } from '../harness/open-pool.ts'
import { quantile, summarise } from '../harness/summary.ts'
import { ledgerOn } from './open-ledger.ts'
import { anyKeyOf, months, type Years } from './years.ts'

interface Task {
  readonly url: string
  readonly years: Years
  /** Before retention begins. */
  readonly seconds: number
  /** Then it is not waited for any longer. */
  readonly longestMs: number
  readonly progress: (text: string) => void
}

/** What one caller feels while two months are dropped with their operation ids. */
export async function retentionMeanwhile(
  task: Task,
): Promise<{ readonly facts: FactTable; readonly comparison: Comparison }> {
  const { url, years, seconds, longestMs, progress } = task
  const pool = await openPool(url, 2)
  const upkeep = await openPool(url, 1)
  try {
    const { quota } = ledgerOn(pool)
    const callsUntil = async (isOver: () => boolean): Promise<number[]> => {
      const taken: number[] = []
      while (!isOver()) {
        const began = performance.now()
        await quota.consume(anyKeyOf('random', years), 1, { operationId: randomUUID() })
        taken.push(performance.now() - began)
      }
      return taken
    }
    progress('retention: before')
    const until = performance.now() + seconds * 1_000
    const before = await callsUntil(() => performance.now() > until)

    progress('retention: dropping two months')
    const began = performance.now()
    let [isOver, ended] = [false, 'nothing']
    const maintaining = createHoldfast(fromPg(upkeep))
      .ledger.maintain({
        keepMonths: months - 2,
        onProgress: (line) => progress(`  ${line}`),
      })
      .then(
        ({ monthsDropped, operationsForgotten }) => {
          ended = `${monthsDropped.length} months, ${operationsForgotten.toLocaleString('en')} ids`
        },
        (error: unknown) => {
          ended = String(error)
        },
      )
    void Promise.race([maintaining, pause(longestMs, undefined, { ref: false })]).finally(() => {
      isOver = true
    })
    const meanwhile = await callsUntil(() => isOver)
    const tookSeconds = (performance.now() - began) / 1_000
    const isDone = ended !== 'nothing'
    const row = (name: string, what: string, taken: readonly number[]): string[] => [
      name,
      what,
      taken.length.toLocaleString('en'),
      ...[quantile(taken, 0.5), quantile(taken, 0.99), Math.max(...taken)].map((ms) =>
        ms.toFixed(2),
      ),
    ]
    return {
      facts: {
        title: 'One caller of random accounts, in ms, before retention and while it runs:',
        columns: ['', 'dropped', 'calls', 'p50', 'p99', 'longest'],
        rows: [
          row(`before, ${seconds.toFixed(0)} s`, '', before),
          row(
            isDone ? `${tookSeconds.toFixed(0)} s` : `stopped after ${tookSeconds.toFixed(0)} s`,
            ended,
            meanwhile,
          ),
        ],
      },
      comparison: {
        name: 'latency_during_retention',
        ratio: summarise(partsOf(meanwhile).map((ms) => ms / quantile(before, 0.5))),
        sides: [
          { value: `${quantile(meanwhile, 0.5).toFixed(3)} ms`, label: 'while it runs' },
          { value: `${quantile(before, 0.5).toFixed(3)} ms`, label: 'before' },
        ],
      },
    }
  } finally {
    await pool.end()
    // A statement that is still under way ends with the server.
    void upkeep.end()
  }
}

/** The medians of ten parts, in the order of time. */
function partsOf(taken: readonly number[]): number[] {
  const size = Math.max(1, Math.ceil(taken.length / 10))
  return Array.from({ length: Math.ceil(taken.length / size) }, (_, at) =>
    quantile(taken.slice(at * size, (at + 1) * size), 0.5),
  )
}
