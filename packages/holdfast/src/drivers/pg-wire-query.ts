import type { Row } from '../core/driver.ts'

/**
 * Sends bytes of our own on a `pg` client and collects the answer. `pg` lets a query object write
 * to the connection itself, as pg-cursor does; it queues it like any other query.
 */

/** The part of a `pg` client that makes this possible. */
export interface WireClient {
  readonly connection: { readonly stream: { write(bytes: Buffer): unknown } }
  readonly processID?: number
  query(query: WireQuery): unknown
}

/** Whether the client lets a query object write to its connection. */
export function isWireClient(client: unknown): client is WireClient {
  const { connection, pipeline } = client as Partial<WireClient> & { readonly pipeline?: boolean }
  return pipeline !== true && typeof connection?.stream?.write === 'function'
}

/** What came back: the rows, and the command tag of the last statement. */
export interface WireAnswer {
  readonly rows: readonly Row[]
  readonly tag: string
}

/** Sends the bytes, which must end with a Sync or be a simple query. */
export async function sendOnWire(
  client: WireClient,
  bytes: Buffer,
  columns: readonly string[],
): Promise<WireAnswer> {
  return new Promise((resolve, reject) => {
    client.query(new WireQuery(bytes, columns, resolve, reject))
  })
}

/** Its methods are what `pg` calls, in the order of a successful run. */
class WireQuery implements WireAnswer {
  readonly rows: Row[] = []
  tag = ''
  readonly #bytes: Buffer
  readonly #columns: readonly string[]
  /** `pg` replaces it to stop its read timer. */
  callback: (error: Error | null) => void

  constructor(
    bytes: Buffer,
    columns: readonly string[],
    resolve: (answer: WireAnswer) => void,
    reject: (error: Error) => void,
  ) {
    this.#bytes = bytes
    this.#columns = columns
    this.callback = (error) => {
      if (error === null) resolve(this)
      else reject(error)
    }
  }

  submit(connection: WireClient['connection']): null {
    connection.stream.write(this.#bytes)
    return null
  }

  handleRowDescription(): void {}

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    const row: Row = {}
    for (let at = 0; at < this.#columns.length; at += 1) {
      row[this.#columns[at] as string] = fields[at]
    }
    this.rows.push(row)
  }

  handleCommandComplete({ text }: { readonly text: string }): void {
    this.tag = text
  }

  handleEmptyQuery(): void {}

  handlePortalSuspended(): void {}

  handleError(error: Error): void {
    this.callback(error)
  }

  handleReadyForQuery(): void {
    this.callback(null)
  }
}
