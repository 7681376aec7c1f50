import { hash } from 'node:crypto'
import type { Row, Statement } from '../../core/driver.ts'
import { sqlStateOf } from '../../core/sql-state.ts'
import { whichBackend } from '../../engines/postgres/tx/session.ts'
import type { PrepareMode } from '../parts/prepare-mode.ts'
import { mayHaveNames, tracksNames } from './pg-names.ts'
import { bound, pipelineMessage } from './pg-wire.ts'
import {
  type Field,
  isWireClient,
  type RowShape,
  sendOnWire,
  type WireClient,
} from './pg-wire-query.ts'

/**
 * A connection that was used once, or whose statements have no names (`mayHaveNames`), or what is prepared on it: names,
 * and the columns of each if they were not known before. The server refuses a name when its columns are others now.
 */
type Seen = 'once' | 'unnamed' | Map<string, readonly Field[]>

/** More is not prepared: every one of them costs memory on the server. */
const mostPerConnection = 100

/** Forgotten by the server (DISCARD ALL), or its columns are others now (ALTER TABLE). */
const outdated: ReadonlySet<string | undefined> = new Set(['26000', '0A000'])

/**
 * Statements with a name that run on their own, prepared where they may be: planning them costs more than running them.
 * Which server process it is, is asked for when a connection is used a second time, unless the statement answers it
 * anyway.
 *
 * A name that the server does not know, or whose columns have changed, is refused before anything is
 * done, so the statement is sent once more without it.
 */
export class PgPrepared {
  readonly #seen = new WeakMap<object, Seen>()
  readonly #mode: PrepareMode

  constructor(mode: PrepareMode) {
    this.#mode = mode
  }

  /** Sends it; `plainly` is how it is sent without a name. */
  async query(
    client: unknown,
    statement: Statement,
    plainly: () => Promise<readonly Row[]>,
  ): Promise<readonly Row[]> {
    const { name } = statement
    if (name === undefined || this.#mode === 'never' || !canBePrepared(client))
      return await plainly()
    const { connection } = client
    const seen = this.#seen.get(connection)
    if (seen === 'unnamed') return await plainly()
    if (seen === undefined || seen === 'once') {
      const asked = statement.columns?.includes('pid') === true
      if (seen === undefined && !asked) {
        this.#seen.set(connection, 'once')
        return await plainly()
      }
      const rows = asked ? await plainly() : await askPid(client)
      const may = mayHaveNames(this.#mode, client, rows[0]?.['pid']) ?? (await tracksNames(client))
      this.#seen.set(connection, may ? new Map() : 'unnamed')
      return asked ? rows : await this.query(client, statement, plainly)
    }
    const unique = uniqueName(name, statement.text)
    const kept = seen.get(unique)
    if (kept === undefined && seen.size >= mostPerConnection) return await plainly()
    try {
      return await send(client, unique, statement, kept, (fields) => seen.set(unique, fields))
    } catch (error) {
      if (!outdated.has(sqlStateOf(error))) throw error
      this.#seen.set(connection, 'once')
      return await plainly()
    }
  }

  /**
   * The same in a transaction of the caller's, who has said that it may be prepared there. A connection is never asked
   * anything of its own: what the statement says of itself tells whether it leads straight to the server. A name that
   * the server has forgotten fails the transaction, once.
   */
  async joined(
    client: unknown,
    statement: Statement,
    plainly: () => Promise<readonly Row[]>,
  ): Promise<readonly Row[]> {
    const { name, columns, text } = statement
    const isAnswered = columns?.includes('pid') === true
    if (name === undefined || this.#mode === 'never' || !isAnswered || !canBePrepared(client))
      return await plainly()
    const { connection } = client
    const seen = this.#seen.get(connection)
    if (seen === 'unnamed') return await plainly()
    if (seen === undefined || seen === 'once') {
      const rows = await plainly()
      const may = mayHaveNames(this.#mode, client, rows[0]?.['pid'])
      if (may !== undefined) this.#seen.set(connection, may ? new Map() : 'unnamed')
      return rows
    }
    const unique = uniqueName(name, text)
    const kept = seen.get(unique)
    if (kept === undefined && seen.size >= mostPerConnection) return await plainly()
    try {
      return await send(client, unique, statement, kept, (fields) => seen.set(unique, fields))
    } catch (error) {
      if (outdated.has(sqlStateOf(error))) this.#seen.set(connection, 'once')
      throw error
    }
  }
}

/** Statements with a name are ours, and not many. */
const names = new Map<string, string>()

/**
 * By the content: another Holdfast on the same pool, with another schema, means another text by the same
 * name. And of our own, since `pg` keeps books about those that it prepares.
 */
function uniqueName(name: string, text: string): string {
  const known = names.get(text)
  if (known !== undefined) return known
  const made = `holdfast_${name}_${hash('sha256', text).slice(0, 16)}`
  names.set(text, made)
  return made
}

interface PreparingClient extends WireClient {
  readonly processID: number
  getTypeParser(oid: number, format: 'text'): (text: string) => unknown
}

function canBePrepared(client: unknown): client is PreparingClient {
  const { processID, getTypeParser } = client as Partial<PreparingClient>
  return (
    typeof processID === 'number' && typeof getTypeParser === 'function' && isWireClient(client)
  )
}

async function askPid(client: WireClient): Promise<readonly Row[]> {
  const message = pipelineMessage({ name: '', ...whichBackend, known: false })
  return (await sendOnWire(client, message, { columns: ['pid'] })).rows
}

async function send(
  client: PreparingClient,
  name: string,
  statement: Statement,
  kept: readonly Field[] | undefined,
  keep: (fields: readonly Field[]) => void,
): Promise<readonly Row[]> {
  const { text, columns } = statement
  const known = kept !== undefined
  const described = columns === undefined && !known
  const message = pipelineMessage({ name, text, ...bound(statement), known, described })
  let fields = kept ?? []
  const shapeOf = (described: readonly Field[]): RowShape => {
    fields = described
    return {
      columns: described.map((field) => field.name),
      // Asked for each time: what the caller sets for a type counts from then on.
      parsers: described.map(({ dataTypeID }) => client.getTypeParser(dataTypeID, 'text')),
    }
  }
  const shape = columns === undefined ? (known ? shapeOf(fields) : shapeOf) : { columns }
  const { rows } = await sendOnWire(client, message, shape)
  if (!known) keep(fields)
  return rows
}
