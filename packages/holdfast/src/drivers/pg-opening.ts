import type { Row, Statement } from '../core/driver.ts'
import { sqlStateOf } from '../core/sql-state.ts'
import { rollbackText } from '../engines/postgres/transaction.ts'
import { pipelineMessage } from './pg-wire.ts'

/**
 * BEGIN and the first statement of a transaction in one round trip: one pipeline of the extended
 * protocol with a single Sync, which every server and pooler understands. `pg` has no call for it,
 * but lets a query object write to the connection itself, as pg-cursor does.
 *
 * On a connection that leads straight to the server both are prepared once, since parsing them
 * costs more than running them. A pooler in transaction mode would hand the name to another server
 * connection; it is told by the process id it makes up. If the server forgot the statements
 * (DISCARD ALL), the opening is sent once more without names: it has done nothing yet.
 */

/** What `pg` calls on a query object, in the order of a successful run. */
interface PgSubmittable {
  submit(connection: { readonly stream: { write(bytes: Buffer): unknown } }): null
  handleRowDescription(): void
  handleDataRow(message: { readonly fields: readonly (string | null)[] }): void
  handleCommandComplete(): void
  handleEmptyQuery(): void
  handlePortalSuspended(): void
  handleError(error: Error): void
  handleReadyForQuery(): void
  /** `pg` replaces it to stop its read timer. */
  callback(error: Error | null): void
}

interface Fusible {
  readonly connection?: { readonly stream?: { readonly write?: unknown } }
  readonly pipeline?: boolean
  readonly processID?: number
  query(query: PgSubmittable | string): unknown
}

/** Whether the client lets a query object write to its connection. */
function isFusible(client: unknown): client is Fusible {
  const { connection, pipeline } = client as Fusible
  return pipeline !== true && typeof connection?.stream?.write === 'function'
}

const unknownPreparedStatement = '26000'

/** The openings of one driver, and what is prepared on which of its connections. */
export class PgOpenings {
  readonly #prepared = new WeakMap<object, Set<string>>()
  readonly #mayPrepare: boolean

  constructor(mayPrepare: boolean) {
    this.#mayPrepare = mayPrepare
  }

  /** Sends both, or nothing and `undefined` if this client or statement is not made for it. */
  send(client: unknown, begin: string, opening: Statement): Promise<readonly Row[]> | undefined {
    if (opening.columns === undefined || !isFusible(client)) return undefined
    return this.#send(client, begin, opening, opening.columns)
  }

  async #send(
    client: Fusible,
    begin: string,
    opening: Statement,
    columns: readonly string[],
  ): Promise<readonly Row[]> {
    const prepared = this.#prepared.get(client)
    try {
      const rows = await submit(client, [begin, opening], columns, prepared)
      if (prepared === undefined && this.#mayPrepare) {
        const direct = Number(rows[0]?.['pid']) === client.processID
        if (direct) this.#prepared.set(client, new Set())
      }
      return rows
    } catch (error) {
      if (prepared === undefined || sqlStateOf(error) !== unknownPreparedStatement) throw error
      this.#prepared.delete(client)
      await client.query(rollbackText)
      return submit(client, [begin, opening], columns, undefined)
    }
  }
}

async function submit(
  client: Fusible,
  [begin, opening]: readonly [string, Statement],
  columns: readonly string[],
  prepared: Set<string> | undefined,
): Promise<readonly Row[]> {
  const named = (label: string): { name: string; known: boolean } => {
    // Names of our own: `pg` keeps books about those it prepares, and these are not in them.
    const name = prepared === undefined ? '' : `holdfast_open_${label}`
    return { name, known: prepared?.has(name) === true }
  }
  const values = opening.values.map((value) => (value === null ? null : String(value)))
  const first = { ...named(begin.toLowerCase()), text: begin, values: [] }
  const second = { ...named(opening.name ?? ''), text: opening.text, values }
  const message = pipelineMessage([first, second])
  return new Promise((resolve, reject) => {
    const rows: Row[] = []
    const query: PgSubmittable = {
      submit(connection) {
        connection.stream.write(message)
        return null
      },
      handleRowDescription: () => undefined,
      handleDataRow({ fields }) {
        rows.push(Object.fromEntries(columns.map((name, at) => [name, fields[at]])))
      },
      handleCommandComplete: () => undefined,
      handleEmptyQuery: () => undefined,
      handlePortalSuspended: () => undefined,
      handleError: (error) => query.callback(error),
      handleReadyForQuery() {
        prepared?.add(first.name).add(second.name)
        query.callback(null)
      },
      callback(error) {
        if (error === null) resolve(rows)
        else reject(error)
      },
    }
    client.query(query)
  })
}
