import { urlWithDatabase, waitUntil } from '@holdfast/testkit'
import type { Doors } from '../core/model.ts'
import { rowsOf } from './ask.ts'

/** The doors to one database. */
export function doorsTo(doors: Doors, database: string): Doors {
  return {
    direct: urlWithDatabase(doors.direct, database),
    pooled: urlWithDatabase(doors.pooled, database),
  }
}

/** Resolves when both lead to a server that takes writes. */
export async function doorsAnswer(doors: Doors): Promise<void> {
  await Promise.all(
    [doors.direct, doors.pooled].map(async (url) => {
      await waitUntil(
        'both doors lead to a server that takes writes',
        async () => {
          try {
            const [row] = await rowsOf<{ standby: boolean }>(
              url,
              'SELECT pg_is_in_recovery() AS standby',
            )
            return row?.standby === false ? true : undefined
          } catch {
            return undefined
          }
        },
        { limitMs: 30_000, everyMs: 20 },
      )
    }),
  )
}
