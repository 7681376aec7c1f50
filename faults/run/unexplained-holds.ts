import type { Client } from 'pg'
import type { HistoryEvent } from '../core/model.ts'

interface OpenHold {
  readonly id: string
  readonly operation: string
  readonly overdue: boolean
}

/** Holds that a sweep leaves behind though they are overdue, and those that nobody says to have made. */
export async function unexplainedHolds(
  client: Client,
  history: readonly HistoryEvent[],
): Promise<string[]> {
  await client.query('SELECT holdfast.sweep(10000)')
  const { rows } = await client.query<OpenHold>(
    `SELECT hold_id AS id, operation_id AS operation,
       expires_at < clock_timestamp() - interval '1 s' AS overdue FROM holdfast.open_holds`,
  )
  const promised = new Set<string>()
  const ends = new Map(
    history.filter(({ type }) => type !== 'invoke').map(({ attempt, type }) => [attempt, type]),
  )
  for (const { id, attempt, type } of history) {
    if (type !== 'invoke' || id === undefined) continue
    const end = ends.get(attempt) ?? 'unknown'
    if (end === 'ok' || end === 'unknown') promised.add(id)
  }
  return rows.flatMap(({ id, operation, overdue }) => {
    if (overdue) return [`hold ${id} of ${operation} is overdue after a sweep`]
    return promised.has(operation) ? [] : [`hold ${id} of ${operation} is in no history`]
  })
}
