import { type WaitUntilOptions, waitUntil } from './wait-until.ts'

/** A pool or client of `pg`, or any function that runs one statement and gives its rows. */
export type Observer =
  | {
      query(text: string, values: unknown[]): Promise<{ rows: Record<string, unknown>[] }>
    }
  | ((text: string, values: unknown[]) => Promise<readonly Record<string, unknown>[]>)

/**
 * Resolves once the backend `pid` waits for a lock that others hold, with the pids of those
 * others. This is how a test knows that a session has arrived at a lock, instead of sleeping and
 * hoping. `pid` is what `pg_backend_pid()` says, and `observer` must not be the blocked session.
 */
export async function waitUntilBlocked(
  observer: Observer,
  pid: number,
  options?: WaitUntilOptions,
): Promise<number[]> {
  return await waitUntil(
    `backend ${pid} is blocked`,
    async () => {
      const text = 'SELECT pg_blocking_pids($1) AS blockers'
      const rows =
        typeof observer === 'function'
          ? await observer(text, [pid])
          : (await observer.query(text, [pid])).rows
      const blockers = rows[0]?.['blockers'] as number[]
      return blockers.length > 0 ? blockers : undefined
    },
    options,
  )
}
