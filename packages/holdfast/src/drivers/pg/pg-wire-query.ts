import type { Row } from '../../core/driver.ts'

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

/** One column as the server describes it. */
export interface Field {
  readonly name: string
  readonly dataTypeID: number
}

/** How rows are read: the names of the columns, and for each what makes a value of its text. */
export interface RowShape {
  readonly columns: readonly string[]
  /** Without them everything stays text. */
  readonly parsers?: readonly ((text: string) => unknown)[]
}

/**
 * Sends the bytes, which must end with a Sync or be a simple query. A shape that is a function is asked
 * when the server has described the columns. Rows that `take` takes are not in the answer.
 */
export async function sendOnWire(
  client: WireClient,
  bytes: Buffer,
  shape: RowShape | ((fields: readonly Field[]) => RowShape),
  take?: (row: Row) => boolean,
): Promise<WireAnswer> {
  return new Promise((resolve, reject) => {
    client.query(new WireQuery(bytes, shape, resolve, reject, take))
  })
}

export const noColumns: RowShape = { columns: [] }

/** Its methods are what `pg` calls, in the order of a successful run. */
class WireQuery implements WireAnswer {
  readonly rows: Row[] = []
  tag = ''
  readonly #bytes: Buffer
  readonly #shapeOf: ((fields: readonly Field[]) => RowShape) | undefined
  #shape: RowShape
  readonly #take: ((row: Row) => boolean) | undefined
  /** `pg` replaces it to stop its read timer. */
  callback: (error: Error | null) => void

  constructor(
    bytes: Buffer,
    shape: RowShape | ((fields: readonly Field[]) => RowShape),
    resolve: (answer: WireAnswer) => void,
    reject: (error: Error) => void,
    take: ((row: Row) => boolean) | undefined,
  ) {
    this.#bytes = bytes
    this.#take = take
    this.#shapeOf = typeof shape === 'function' ? shape : undefined
    this.#shape = typeof shape === 'function' ? noColumns : shape
    this.callback = (error) => {
      if (error === null) resolve(this)
      else reject(error)
    }
  }

  submit(connection: WireClient['connection']): null {
    connection.stream.write(this.#bytes)
    return null
  }

  handleRowDescription({ fields }: { readonly fields: readonly Field[] }): void {
    if (this.#shapeOf !== undefined) this.#shape = this.#shapeOf(fields)
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    const { columns, parsers } = this.#shape
    const row: Row = {}
    for (let at = 0; at < columns.length; at += 1) {
      const text = fields[at] as string | null
      const parse = parsers?.[at]
      row[columns[at] as string] = parse === undefined || text === null ? text : parse(text)
    }
    if (this.#take?.(row) !== true) this.rows.push(row)
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
