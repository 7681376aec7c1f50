import type { Listening, Row, Session, Statement } from '../../core/driver.ts'
import { holdfastError } from '../../core/errors.ts'
import { whichBackend } from '../../engines/postgres/tx/session.ts'
import { PinnedSession } from '../parts/pinned-session.ts'
import type { PostgresJsHandle } from './postgres-js-handle.ts'

/** What `sql.reserve()` gives. */
type ReservedHandle = Pick<PostgresJsHandle, 'unsafe'> & { release(): void }

type Run = (
  handle: Pick<PostgresJsHandle, 'unsafe'>,
  statement: Statement,
) => Promise<readonly Row[]>

/** A connection as postgres.js keeps it; `begin` listens for its end in the same way. */
interface Connection {
  onclose?: ((error: unknown) => void) | null
  terminate(): void
}

/**
 * Keeps a connection of the pool. postgres.js 3.4.9 does not say when a reserved connection closes,
 * and writes the next statement to no socket, which ends the process. So we listen where its own
 * `begin` does, on the connection that `onexecute` shows, and refuse if there is none.
 */
export async function postgresJsSession(sql: unknown, run: Run): Promise<Session> {
  const { reserve } = sql as { readonly reserve?: () => Promise<ReservedHandle> }
  if (typeof reserve !== 'function') throw unfit('the root sql keeps connections')
  const handle = await reserve()
  let connection: Connection | undefined
  const options = {
    onexecute: (used: Connection) => {
      connection = used
      return true
    },
  }
  const rows = await handle.unsafe(whichBackend.text, [], options as never)
  if (typeof connection?.terminate !== 'function') {
    handle.release()
    throw unfit('this version does not tell when a connection closes')
  }
  const { state } = rows as { readonly state?: { readonly pid?: number } }
  const closed = Promise.withResolvers<void>()
  const session = new PinnedSession({
    claimedPid: state?.pid,
    run: (statement) => run(handle, statement),
    async close() {
      if (session.lost.aborted) return
      connection?.terminate()
      await closed.promise
    },
  })
  connection.onclose = (error) => {
    closed.resolve()
    session.lose(error)
  }
  return session
}

/**
 * postgres.js has a connection of its own for this, and connects again by itself. It says so each time it listens:
 * what was sent before it did so again is lost, which is worth a look.
 */
export async function postgresJsListening(
  sql: unknown,
  channel: string,
  heard: (payload: string) => void,
): Promise<Listening> {
  const { listen } = sql as {
    readonly listen?: (
      channel: string,
      heard: (payload: string) => void,
      listens: () => void,
    ) => Promise<{ unlisten(): Promise<void> }>
  }
  if (typeof listen !== 'function') throw unfit('the root sql listens')
  let before = false
  const listening = await listen(channel, heard, () => {
    if (before) heard('')
    before = true
  })
  return { lost: new AbortController().signal, end: async () => await listening.unlisten() }
}

function unfit(subject: string): Error {
  return holdfastError('DRIVER_HANDLE_INVALID', { details: { subject } })
}
