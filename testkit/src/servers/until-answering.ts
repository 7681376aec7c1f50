import type { Client } from 'pg'
import { withClient } from '../create-database.ts'
import type { Guard } from './guard.ts'
import { waitUntil } from '../wait-until.ts'

/**
 * Connects again and again until the guarded server answers; resolves with nothing then, or with
 * the server's log if it ended instead. `isOurs` asks the one who answers for proof of identity,
 * since a stranger may have taken the port in the meantime.
 */
export async function untilAnswering(
  guard: Guard,
  url: string,
  isOurs: (client: Client) => Promise<boolean>,
): Promise<string | undefined> {
  const look = async (): Promise<{ log: string | undefined } | undefined> => {
    const log = guard.ended()
    if (log !== undefined) return { log }
    try {
      return (await withClient(url, isOurs)) ? { log: undefined } : undefined
    } catch {
      return undefined // it does not listen yet, or is still starting up
    }
  }
  const seen = await waitUntil('the new server answers', look, { limitMs: 60_000, everyMs: 20 })
  return seen.log
}
