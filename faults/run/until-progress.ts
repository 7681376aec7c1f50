import { waitUntil } from '@holdfast/testkit'
import type { HistoryEvent, Violation } from '../core/model.ts'
import { readHistory } from '../history/read-history.ts'
import { allWorkloads } from '../workloads/index.ts'

/** After the faults every workload has so long to do something again. */
const limitMs = 10_000

/** Waits until every workload did something that was asked for after the faults had ended. */
export async function untilProgress(
  folder: string,
  endedAt: string,
): Promise<{ recoveryMs: Record<string, number>; violations: Violation[] }> {
  let recoveryMs: Record<string, number> = {}
  const missing = (): string[] =>
    allWorkloads.map(({ name }) => name).filter((name) => recoveryMs[name] === undefined)
  try {
    await waitUntil(
      'every workload makes progress',
      () => {
        recoveryMs = firstSuccesses(readHistory(folder).events, BigInt(endedAt))
        return missing().length === 0 ? true : undefined
      },
      { limitMs, everyMs: 100 },
    )
  } catch {
    // Who is missing is said below.
  }
  const violations = missing().map((workload) => ({
    rule: 'no_progress',
    workload,
    what: `nothing was done within ${limitMs} ms of the end of the faults`,
  }))
  return { recoveryMs, violations }
}

function firstSuccesses(events: readonly HistoryEvent[], endedAt: bigint): Record<string, number> {
  const invoked = new Set<string>()
  const firsts: Record<string, number> = {}
  for (const { at, type, attempt, workload } of events) {
    if (BigInt(at) <= endedAt) continue
    if (type === 'invoke') invoked.add(attempt)
    else if (type === 'ok' && invoked.has(attempt)) {
      firsts[workload] ??= Math.round(Number(BigInt(at) - endedAt) / 1e6)
    }
  }
  return firsts
}
