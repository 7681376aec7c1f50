import type { Waiting } from '../../../claims/engine.ts'
import type { Executor, Row, Statement } from '../../../core/driver.ts'
import type { ClaimTable } from './claim-table.ts'
import { type Level, levelsAtOnce, nextLevels } from './claims.ts'

/** Rows whose keys stand in one statement. */
const batch = 256

export function inBatches<T>(list: readonly T[]): (readonly T[])[] {
  const batches: (readonly T[])[] = []
  for (let from = 0; from < list.length; from += batch) batches.push(list.slice(from, from + batch))
  return batches
}

/** Locks as many rows as are wanted: of each priority by itself, if there are any, until there are enough. */
export async function inLevels(
  on: Executor,
  table: ClaimTable,
  waiting: Waiting,
  limit: number,
  pick: (level: Level | undefined, limit: number) => Statement,
): Promise<readonly Row[]> {
  const { priority } = waiting
  if (priority === undefined) return await on.query(pick(undefined, limit))
  const picked: Row[] = []
  let last: Level | undefined
  for (;;) {
    const levels = await on.query(nextLevels(table, waiting, priority, last))
    for (const { '#level': value } of levels) {
      last = { column: priority.column, value: String(value) }
      picked.push(...(await on.query(pick(last, limit - picked.length))))
      if (picked.length === limit) return picked
    }
    if (levels.length < levelsAtOnce) return picked
  }
}
