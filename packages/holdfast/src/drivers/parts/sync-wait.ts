import { holdfastError } from '../../core/errors.ts'
import { processWide } from '../../core/process-wide.ts'

/**
 * With synchronous replication COMMIT waits for a standby. If that wait is cancelled, PostgreSQL says
 * COMMIT all the same, together with a WARNING: it has committed here, and is lost if the standby takes
 * over now. That is an unknown outcome, and no success.
 */

/** Whatever a client lets its user see of a notice. */
interface Notice {
  readonly routine?: unknown
  readonly message?: unknown
}

/** By the routine that says so, since the message is in the language of the server. */
function isCancelledWait(notice: unknown): boolean {
  const { routine, message } = (notice ?? {}) as Notice
  if (typeof routine === 'string') return routine === 'SyncRepWaitForLSN'
  return typeof message === 'string' && /wait for synchronous replication/.test(message)
}

/** How often it was heard of in this process, on connections that cannot be told apart. */
const waits = /* @__PURE__ */ processWide('cancelled-waits/1', () => ({ heard: 0 }))

/**
 * Tells Holdfast of a notice that a client received. Needed where Holdfast cannot listen itself, and only
 * with synchronous replication; then work that is under way when its wait for the standby is cancelled
 * ends as COMMIT_UNKNOWN and not as a success.
 *
 * @example const sql = postgres(url, { onnotice: hearNotice })
 */
export function hearNotice(notice: unknown): void {
  if (isCancelledWait(notice)) waits.heard += 1
}

/**
 * For what a client commits out of our sight: the function throws if a cancelled wait was heard of since.
 * It may have been another one: rather unknown than wrong.
 */
export function hearing(): () => void {
  const before = waits.heard
  return () => {
    if (waits.heard !== before) throw unsynced()
  }
}

/** One statement that is a transaction of its own, sent by such a client. */
export async function unlessHeard<T>(run: () => Promise<T>): Promise<T> {
  const assertSynced = hearing()
  const result = await run()
  assertSynced()
  return result
}

/** The part of an event emitter that we need; `pg` clients and pools have it. */
interface Emitter {
  on(event: string, listener: (about: never) => void): unknown
  off(event: string, listener: (about: never) => void): unknown
}

const listening = /* @__PURE__ */ processWide('listening/1', () => new WeakSet<object>())

/** Listens to all connections of a `pg` pool beneath somebody else's client, if there is one. */
export function hearPool(pool: unknown): void {
  const { on, totalCount } = (pool ?? {}) as Partial<Emitter> & { readonly totalCount?: unknown }
  if (typeof on !== 'function' || totalCount === undefined) return
  if (listening.has(pool as object)) return
  listening.add(pool as object)
  ;(pool as Emitter).on('acquire', (client: Emitter) => {
    if (listening.has(client)) return
    listening.add(client)
    client.on('notice', hearNotice)
  })
}

/** The WARNING with which PostgreSQL answers a COMMIT outside a transaction, besides saying COMMIT. */
const noTransaction = '25P01'
/** And the one with which it answers a BEGIN inside of one, besides saying BEGIN. */
const insideAlready = '25001'

/** Listens to one connection: `cancelled` says whether a wait was cancelled on it since then. */
export class SyncWatch {
  readonly #client: Partial<Emitter>
  #cancelled = false
  /** A COMMIT was answered that had nothing to commit. */
  committedNothing = false
  /** A BEGIN was answered on a connection that had a transaction already. */
  begunInside = false

  constructor(client: unknown) {
    this.#client = client as Partial<Emitter>
    this.#client.on?.('notice', this.#listen)
  }

  readonly #listen = (notice: unknown): void => {
    const { code } = notice as { readonly code?: unknown }
    if (isCancelledWait(notice)) this.#cancelled = true
    else if (code === noTransaction) this.committedNothing = true
    else if (code === insideAlready) this.begunInside = true
  }

  /** Throws if a wait was cancelled since the last time that this was asked. */
  assertSynced(): void {
    if (!this.#cancelled) return
    this.#cancelled = false
    throw unsynced()
  }

  stop(): void {
    this.#client.off?.('notice', this.#listen)
  }
}

function unsynced(): Error {
  return holdfastError('COMMIT_UNKNOWN', {
    details: {
      subject: 'the wait for the synchronous standby was cancelled',
      reason: 'unsynced',
    },
  })
}
