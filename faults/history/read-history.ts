import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FaultEvent, HistoryEvent } from '../core/model.ts'

/** What everybody wrote down, in the order of the clock. */
export interface History {
  readonly events: readonly HistoryEvent[]
  readonly faults: readonly FaultEvent[]
}

/** Reads all files of a folder. Who was killed while it wrote leaves half a line: that was told to nobody. */
export function readHistory(folder: string): History {
  const files = readdirSync(folder).filter((name) => name.endsWith('.jsonl'))
  const all = files.flatMap((name) => linesOf(readFileSync(join(folder, name), 'utf8')))
  const sorted = all.toSorted((a, b) => compare(BigInt(a.at), BigInt(b.at)))
  return {
    events: sorted.filter((event): event is HistoryEvent => !('fault' in event)),
    faults: sorted.filter((event): event is FaultEvent => 'fault' in event),
  }
}

function linesOf(text: string): (HistoryEvent | FaultEvent)[] {
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  return whole
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as HistoryEvent | FaultEvent)
}

function compare(a: bigint, b: bigint): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}
