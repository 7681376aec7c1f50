import type { Row, Statement } from '../../core/driver.ts'
import { sqlStateOf } from '../../core/sql-state.ts'
import { rollbackText } from '../../engines/postgres/tx/transaction.ts'
import { pipelineMessage, simpleMessage } from './pg-wire.ts'
import { isWireClient, noColumns, sendOnWire, type WireClient } from './pg-wire-query.ts'

const unknownPreparedStatement = '26000'

/**
 * BEGIN and the first statement of a transaction in one round trip: one pipeline of the extended
 * protocol with a single Sync, which every server and pooler understands.
 *
 * On a connection that leads straight to the server both are prepared once, since parsing them
 * costs more than running them. A pooler in transaction mode would hand the name to another server
 * connection; it is told by the process id it makes up. If the server forgot the statements
 * (DISCARD ALL), the opening is sent once more without names: it has done nothing yet.
 */
export class PgOpenings {
  /** What is prepared on which connection; absent for those not known to be direct. */
  readonly #prepared = new WeakMap<object, Set<string>>()
  readonly #mayPrepare: boolean

  constructor(mayPrepare: boolean) {
    this.#mayPrepare = mayPrepare
  }

  /** Sends both, or nothing and `undefined` if this client or statement is not made for it. */
  send(client: unknown, begin: string, opening: Statement): Promise<readonly Row[]> | undefined {
    if (opening.columns === undefined || !isWireClient(client)) return undefined
    return this.#send(client, begin, opening, opening.columns)
  }

  async #send(
    client: WireClient,
    begin: string,
    opening: Statement,
    columns: readonly string[],
  ): Promise<readonly Row[]> {
    const prepared = this.#prepared.get(client)
    try {
      const message = openingMessage(begin, opening, prepared)
      const { rows } = await sendOnWire(client, message, { columns })
      if (prepared !== undefined) prepared.add(begin).add(opening.text)
      else if (this.#mayPrepare && Number(rows[0]?.['pid']) === client.processID) {
        this.#prepared.set(client, new Set())
      }
      return rows
    } catch (error) {
      if (prepared === undefined || sqlStateOf(error) !== unknownPreparedStatement) throw error
      this.#prepared.delete(client)
      await sendOnWire(client, simpleMessage(rollbackText), noColumns)
      const unnamed = openingMessage(begin, opening, undefined)
      return (await sendOnWire(client, unnamed, { columns })).rows
    }
  }
}

function openingMessage(
  begin: string,
  opening: Statement,
  prepared: ReadonlySet<string> | undefined,
): Buffer {
  // Names of our own: `pg` keeps books about those it prepares, and these are not in them.
  const name = (label: string): string => (prepared === undefined ? '' : `holdfast_open_${label}`)
  return pipelineMessage(
    {
      name: name(begin),
      text: begin,
      values: [],
      known: prepared?.has(begin) === true,
    },
    {
      name: name(opening.name ?? ''),
      text: opening.text,
      values: opening.values,
      known: prepared?.has(opening.text) === true,
    },
  )
}
