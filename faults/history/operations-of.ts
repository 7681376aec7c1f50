import type { HistoryEvent, Outcome } from '../core/model.ts'

/** One attempt from its beginning to its end, in nanoseconds since the first event of the history. */
export interface Operation {
  readonly process: string
  readonly workload: string
  readonly operation: string
  readonly key: string
  readonly attempt: string
  readonly id: string | undefined
  readonly began: number
  /** `Infinity` if it may still be under way: its process was killed, or nobody knows how it ended. */
  readonly ended: number
  /** An attempt without an end is unknown. */
  readonly outcome: Outcome
  /** When its end was written down, whatever it was. */
  readonly told: number | undefined
  readonly asked: unknown
  readonly answered: unknown
  readonly code: string | undefined
}

/** Finds the end of every beginning. The events are in the order of the clock. */
export function operationsOf(events: readonly HistoryEvent[]): Operation[] {
  const [first] = events
  if (first === undefined) return []
  const origin = BigInt(first.at)
  const since = (at: string): number => Number(BigInt(at) - origin)
  const ends = new Map<string, HistoryEvent>()
  for (const event of events) if (event.type !== 'invoke') ends.set(event.attempt, event)
  return events
    .filter(({ type }) => type === 'invoke')
    .map((event) => {
      const end = ends.get(event.attempt)
      const outcome = end === undefined ? 'unknown' : (end.type as Outcome)
      const told = end === undefined ? undefined : since(end.at)
      return {
        process: event.process,
        workload: event.workload,
        operation: event.operation,
        key: event.key,
        attempt: event.attempt,
        id: event.id,
        began: since(event.at),
        ended: outcome === 'unknown' || told === undefined ? Number.POSITIVE_INFINITY : told,
        outcome,
        told,
        asked: event.value,
        answered: end?.value,
        code: end?.code,
      }
    })
}

/** The same by what `of` says; what has none is left out. */
export function grouped<T>(
  items: readonly T[],
  of: (item: T) => string | undefined,
): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const name = of(item)
    if (name === undefined) continue
    const group = groups.get(name)
    if (group === undefined) groups.set(name, [item])
    else group.push(item)
  }
  return groups
}
