import { waitUntil } from '@holdfast/testkit'
import { type Connection, createConnection, type ResultSetHeader } from 'mysql2/promise'

type Row = Record<string, unknown>

/** One connection, named by its number on the server. Ends with the test: `await using`. */
export class InnodbSession implements AsyncDisposable {
  readonly id: number
  readonly #connection: Connection

  private constructor(connection: Connection) {
    this.#connection = connection
    this.id = connection.threadId
  }

  static async open(uri: string): Promise<InnodbSession> {
    const connection = await createConnection({ uri })
    // A connection that the server ends is told so by its next statement.
    connection.on('error', () => undefined)
    return new InnodbSession(connection)
  }

  /** By the text protocol. */
  async rows(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    const [rows] = await this.#connection.query(text, [...values])
    return Array.isArray(rows) ? (rows as Row[]) : []
  }

  /** One after the other. */
  async all(...texts: readonly string[]): Promise<void> {
    for (const text of texts) await this.rows(text)
  }

  /** What the server says about a statement that gives no rows. */
  async told(text: string): Promise<ResultSetHeader> {
    const [header] = await this.#connection.query(text)
    return header as ResultSetHeader
  }

  /** The first column of the first row. */
  async value(text: string): Promise<unknown> {
    const [row] = await this.rows(text)
    return row === undefined ? undefined : Object.values(row)[0]
  }

  /** Whether it is in a transaction, by the flag of an OK packet. */
  async isInTransaction(): Promise<boolean> {
    const { serverStatus } = await this.told('DO 0')
    return (serverStatus & 1) === 1
  }

  /** Resolves once the other session is seen to wait for a lock of InnoDB. */
  async seesWaiting(other: InnodbSession): Promise<void> {
    await waitUntil(`connection ${other.id} waits for a lock`, async () =>
      (await this.waiting()).has(other.id) ? true : undefined,
    )
  }

  /**
   * Connections that wait for a lock of InnoDB. Not from information_schema.INNODB_TRX: that is made anew only if nobody has
   * looked at it for a tenth of a second, and tests at the same time keep it from ever being.
   */
  async waiting(): Promise<ReadonlySet<number>> {
    const [row] = await this.rows('SHOW ENGINE INNODB STATUS')
    const blocks = String(row?.['Status']).split('---TRANSACTION').slice(1)
    const ids = blocks
      .filter((block) => /^LOCK WAIT /m.test(block))
      .map((block) => Number(/ thread id (\d+)/.exec(block)?.[1]))
    return new Set(ids)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#connection.destroy()
  }
}

/** The number of the error that a promise rejects with, or `undefined` if it resolves. */
export async function errnoFrom(promise: Promise<unknown>): Promise<number | undefined> {
  try {
    await promise
    return undefined
  } catch (error) {
    return Number((error as { errno?: unknown }).errno)
  }
}

/** Whether it resolves while `watcher` does not see it wait. */
export async function waits(
  watcher: InnodbSession,
  waiter: InnodbSession,
  running: Promise<unknown>,
): Promise<boolean> {
  const ended = running.then(
    () => false,
    () => false,
  )
  return await Promise.race([ended, watcher.seesWaiting(waiter).then(() => true)])
}
