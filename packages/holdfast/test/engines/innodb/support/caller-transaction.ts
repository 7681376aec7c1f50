import { randomUUID } from 'node:crypto'
import { onTestFinished } from 'vitest'
import type { Handle, InnodbClient } from './innodb-clients.ts'
import { waitUntil } from '@holdfast/testkit'
import type { InnodbSession } from '../../../server-behaviour/innodb/support/innodb-session.ts'

/** A name that nobody else uses. */
export function fresh(): string {
  return randomUUID()
}

/** A connection of the caller's own with an open transaction; rolled back when the test ends. */
export async function callerTransaction(
  pool: InnodbClient,
  level: 'READ COMMITTED' | 'REPEATABLE READ' = 'READ COMMITTED',
): Promise<Handle> {
  const handle = await pool.connect()
  onTestFinished(() => handle.destroy())
  await handle.query(`SET TRANSACTION ISOLATION LEVEL ${level}`)
  await handle.beginTransaction()
  return handle
}

/** Resolves once somebody in this database is seen to wait for a row. */
export async function somebodyWaits(session: InnodbSession, database: string): Promise<void> {
  await waitUntil('somebody waits for a lock', async () => {
    const here = await session.rows('SELECT ID FROM information_schema.PROCESSLIST WHERE DB = ?', [
      database,
    ])
    const waiting = await session.waiting()
    return here.some(({ ID }) => waiting.has(Number(ID))) ? true : undefined
  })
}

/**
 * Resolves once a statement with these words is under way in this database. Of those that share a row, MySQL's status does
 * not say that they wait for it.
 */
export async function somebodyRuns(
  session: InnodbSession,
  database: string,
  words: string,
): Promise<void> {
  await waitUntil(`somebody runs ${words}`, async () => {
    const running = await session.rows(
      'SELECT ID FROM information_schema.PROCESSLIST WHERE DB = ? AND INFO LIKE ? AND ID <> CONNECTION_ID()',
      [database, `%${words}%`],
    )
    return running.length > 0 || undefined
  })
}
