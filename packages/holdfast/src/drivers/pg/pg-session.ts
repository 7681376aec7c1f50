import { once } from 'node:events'
import type { Listening, Row, Statement } from '../../core/driver.ts'
import { listenText } from '../../engines/postgres/tx/session.ts'
import { PinnedSession } from '../parts/pinned-session.ts'
import { SyncWatch } from '../parts/sync-wait.ts'

/** The part of a `pg` client that a session needs. */
interface PinnableClient {
  query(text: string): Promise<unknown>
  release(destroy: boolean): void
  on(event: string, listener: (message: never) => void): unknown
  /** As the server, or a pooler, said when it connected. */
  readonly processID?: number | null
}

type Run = (client: never, statement: Statement) => Promise<readonly Row[]>

/** Keeps a client of the pool. The pool forgets it when it ends: it is never handed out again. */
export function pgSession(pinned: unknown, run: Run): PinnedSession {
  const client = pinned as PinnableClient
  const sync = new SyncWatch(client)
  const session = new PinnedSession({
    claimedPid: client.processID ?? undefined,
    async run(statement) {
      const rows = await run(client as never, statement)
      sync.assertSynced()
      return rows
    },
    async close() {
      if (session.lost.aborted) {
        client.release(true)
        return
      }
      const ended = once(client as unknown as NodeJS.EventEmitter, 'end')
      client.release(true)
      await ended
    },
  })
  client.on('error', (error: Error) => session.lose(error))
  client.on('end', () => session.lose())
  return session
}

/** Hears notifications on a client of the pool. */
export async function pgListening(
  pinned: unknown,
  run: Run,
  channel: string,
  heard: (payload: string) => void,
): Promise<Listening> {
  const client = pinned as PinnableClient
  const session = pgSession(client, run)
  client.on('notification', (message: { readonly channel: string; readonly payload?: string }) => {
    if (message.channel === channel) heard(message.payload ?? '')
  })
  try {
    await client.query(listenText(channel))
  } catch (error) {
    await session.end()
    throw error
  }
  return session
}
