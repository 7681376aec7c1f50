import type { TransactionState } from '../core/driver.ts'
import { commitText, rolledBackTag } from '../engines/postgres/transaction.ts'
import { SyncWatch } from './sync-wait.ts'

/** What was seen of a connection while somebody watched it. */
export interface ConnectionWatch {
  readonly lost: boolean
  /** Command tags are visible. */
  readonly seesTags: boolean
  /** The command tag of the last COMMIT or ROLLBACK, whichever the server made of it. */
  readonly ending: string | undefined
  /** @throws COMMIT_UNKNOWN if a wait for the synchronous standby was cancelled on it */
  assertSynced(): void
  stop(): void
}

/** The part of a `pg` client by which its connection can be watched. */
export interface PgConnection {
  on(event: 'error', listener: (error: Error) => void): unknown
  off(event: 'error', listener: (error: Error) => void): unknown
  /** Where command tags are announced; not part of the documented face. */
  readonly connection?: {
    on?(event: 'commandComplete', listener: (message: { readonly text?: string }) => void): unknown
    off?(event: 'commandComplete', listener: (message: { readonly text?: string }) => void): unknown
  }
}

/**
 * Watches a checked-out client. The pool takes its own listener away for that time, and without
 * one a lost connection is an unhandled `error` event, which ends the process. Command tags are only
 * worth watching where COMMIT is sent by someone who does not look at them.
 */
export function watchConnection(client: PgConnection, tags = true): ConnectionWatch {
  let lost = false
  let seesTags = false
  let ending: string | undefined
  const onError = (): void => {
    lost = true
  }
  const onTag = ({ text }: { readonly text?: string }): void => {
    seesTags = true
    if (text === commitText || text === rolledBackTag) ending = text
  }
  client.on('error', onError)
  const sync = new SyncWatch(client)
  const announcer = tags ? client.connection : undefined
  announcer?.on?.('commandComplete', onTag)
  return {
    get lost() {
      return lost
    },
    get seesTags() {
      return seesTags
    },
    get ending() {
      return ending
    },
    assertSynced: () => sync.assertSynced(),
    stop() {
      client.off('error', onError)
      sync.stop()
      announcer?.off?.('commandComplete', onTag)
    },
  }
}

/** Newer `pg` tells the state of its connection; older ones leave it to the server. */
interface Observable {
  getTransactionStatus?(): string | null
  readonly readyForQuery?: boolean
  /** Only a pool has it. */
  readonly totalCount?: number
}

/**
 * What a `pg` client knows about its transaction. Also used for clients beneath an ORM. While a
 * statement is under way, or has failed and the server has not yet said what that did to the
 * transaction, the last known state is no answer.
 */
export function pgTransactionState(client: unknown): TransactionState {
  const handle = client as Observable
  if (handle.totalCount !== undefined) return 'none'
  if (typeof handle.getTransactionStatus !== 'function') return 'unknown'
  if (handle.readyForQuery === false) return 'unknown'
  const status = handle.getTransactionStatus()
  if (status === 'T') return 'open'
  return status === 'E' ? 'failed' : 'none'
}
