import type { Row, Session, Statement } from '../../core/driver.ts'
import { holdfastError } from '../../core/errors.ts'
import { within } from '../../core/within.ts'

/** One connection of a client, by the client's own calls. */
export interface PinnedConnection {
  readonly claimedPid: number | undefined
  run(statement: Statement): Promise<readonly Row[]>
  /** Closes the connection; resolves when it is closed. */
  close(): Promise<unknown>
}

/** A server that cannot be reached does not keep us from ending. */
const closeLimitMs = 1_000

/**
 * A session on a pinned connection. Call `lose` when the client says that the connection is gone:
 * from then on nothing is sent, and what was sent and not answered fails.
 */
export class PinnedSession implements Session {
  readonly #connection: PinnedConnection
  readonly #lost = new AbortController()
  #ending: Promise<unknown> | undefined

  constructor(connection: PinnedConnection) {
    this.#connection = connection
  }

  get lost(): AbortSignal {
    return this.#lost.signal
  }

  get claimedPid(): number | undefined {
    return this.#connection.claimedPid
  }

  lose(cause?: unknown): void {
    if (this.#ending !== undefined || this.lost.aborted) return
    this.#lost.abort(holdfastError('CONNECTION_LOST', { cause }))
  }

  async query(statement: Statement): Promise<readonly Row[]> {
    this.lost.throwIfAborted()
    if (this.#ending !== undefined) {
      throw holdfastError('DRIVER_HANDLE_INVALID', {
        details: { subject: 'the session has ended' },
      })
    }
    const { promise, reject } = Promise.withResolvers<never>()
    const onLost = (): void => reject(this.lost.reason)
    this.lost.addEventListener('abort', onLost, { once: true })
    try {
      return await Promise.race([this.#connection.run(statement), promise])
    } finally {
      this.lost.removeEventListener('abort', onLost)
    }
  }

  async end(): Promise<void> {
    this.#ending ??= within(this.#connection.close(), closeLimitMs)
    await this.#ending
  }
}
