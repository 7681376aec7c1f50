/** What the tests about waiting have in common. */
import { waitUntil } from '@holdfast/testkit'
import type { HoldfastError } from '../../../src/errors.ts'
import { errorOf, type OpenTransaction, type Room } from './open-room.ts'

/** How long after its limit an error may come. */
export const graceMs = 150

/** A transaction that holds rows of `accounts`. */
export async function holding(room: Room, ...ids: number[]): Promise<OpenTransaction> {
  const holder = await room.begin()
  await holder.sql('SELECT FROM accounts WHERE id = ANY ($1) FOR UPDATE', [ids])
  return holder
}

/** The error, and how long it took. */
export async function timed(
  call: () => Promise<unknown>,
): Promise<{ error: HoldfastError; afterMs: number }> {
  const began = performance.now()
  const error = (await errorOf(call())) as HoldfastError
  return { error, afterMs: performance.now() - began }
}

/** Both timeouts as the server writes them. */
export async function timeouts({ sql }: OpenTransaction): Promise<unknown> {
  const [row] = await sql(
    `SELECT current_setting('lock_timeout') AS lock, current_setting('statement_timeout') AS statement`,
  )
  return row
}

/** Resolves once the backend has been waiting for one and the same lock for so long. */
export async function waitedFor(room: Room, pid: number, ms: number): Promise<void> {
  const look = async (): Promise<true | undefined> => {
    const waits = await room.sql(
      `SELECT FROM pg_locks WHERE pid = $1 AND NOT granted
       AND clock_timestamp() - waitstart > make_interval(secs => $2 / 1000.0)`,
      [pid, ms],
    )
    return waits.length > 0 ? true : undefined
  }
  try {
    await waitUntil(`backend ${pid} has waited for ${ms} ms`, look, { limitMs: ms + 3_000 })
  } catch (error) {
    // A busy machine looks only when the wait is over.
    throw new Error(`too late: the wait of backend ${pid} was not seen`, { cause: error })
  }
}
