import { commitText, rolledBackTag } from '../../engines/postgres/tx/transaction.ts'
import type { Leash } from '../parts/leash.ts'
import { activeQuery, failureAnswered, textOf } from './pg-leash.ts'
import { SyncWatch } from '../parts/sync-wait.ts'
import { processWide } from '../../core/process-wide.ts'

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
 * What is seen of a checked-out client while somebody watches it. The pool takes its own listener away
 * for that time, and without one a lost connection is an unhandled `error` event, which ends the process.
 */
export class ConnectionWatch {
  lost = false
  /** Command tags are visible. */
  seesTags = false
  /** The command tag of the last COMMIT or ROLLBACK, whichever the server made of it. */
  ending: string | undefined
  /** Told about the tags of what a body sends; none while the owner of the transaction sends something. */
  leash: Leash | undefined
  readonly #client: PgConnection
  readonly #announcer: PgConnection['connection']
  readonly #sync: SyncWatch
  /** The last text that was answered with such a tag, and how often. */
  #tagged: object | undefined
  #times = 0

  /** `tags`: only worth watching where somebody sends statements that we do not know. */
  constructor(client: PgConnection, tags = true) {
    this.#client = client
    this.#announcer = tags ? client.connection : undefined
    client.on('error', this.#onError)
    this.#sync = new SyncWatch(client)
    this.#announcer?.on?.('commandComplete', this.#onTag)
  }

  readonly #onError = (): void => {
    this.lost = true
  }

  /** Until the server has said what a failed statement has made of the transaction. */
  async answered(): Promise<void> {
    await failureAnswered(this.#client)
  }

  readonly #onTag = ({ text }: { readonly text?: string }): void => {
    this.seesTags = true
    if (text === commitText || text === rolledBackTag) this.ending = text
    if (this.leash === undefined || text === undefined || !isControl(text)) return
    const query = activeQuery(this.#client)
    this.#times = query !== undefined && query === this.#tagged ? this.#times + 1 : 1
    this.#tagged = query
    this.leash.tagged(text, textOf(query), this.#times)
  }

  /** A COMMIT was answered with the remark that there was no transaction. */
  get committedNothing(): boolean {
    return this.#sync.committedNothing
  }

  /** A BEGIN was answered with the remark that there was a transaction already. */
  get begunInside(): boolean {
    return this.#sync.begunInside
  }

  /** From here on COMMIT is under way, by whoever owns the transaction. */
  committing(): void {
    this.leash = undefined
    this.ending = undefined
    this.#sync.committedNothing = false
  }

  /** @throws COMMIT_UNKNOWN if a wait for the synchronous standby was cancelled on it */
  assertSynced(): void {
    this.#sync.assertSynced()
  }

  stop(): void {
    this.#client.off('error', this.#onError)
    this.#sync.stop()
    this.#announcer?.off?.('commandComplete', this.#onTag)
  }
}

/** Tags of statements that begin or end a transaction; SELECT and its like carry a count. */
function isControl(tag: string): boolean {
  return (
    tag === commitText ||
    tag === rolledBackTag ||
    tag === 'BEGIN' ||
    tag === 'START TRANSACTION' ||
    tag === 'PREPARE TRANSACTION'
  )
}

type Endings = { count: number }
const endings = /* @__PURE__ */ processWide('endings/1', () => new WeakMap<object, Endings>())

interface Announcer {
  on?(event: 'readyForQuery', listener: (message: { readonly status?: string }) => void): unknown
}

/** How many transactions have ended on the connection of a `pg` client since this was first asked. */
export function pgEndings(client: unknown): number | undefined {
  const { connection } = client as { readonly connection?: Announcer }
  if (typeof connection?.on !== 'function') return undefined
  const known = endings.get(connection)
  if (known !== undefined) return known.count
  const made: Endings = { count: 0 }
  connection.on('readyForQuery', ({ status }) => {
    if (status === 'I') made.count += 1
  })
  endings.set(connection, made)
  return made.count
}
