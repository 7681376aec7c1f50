import type { Row, Statement } from '../../core/driver.ts'
import { sqlStateOf } from '../../core/sql-state.ts'
import { rollbackText } from '../../engines/postgres/tx/transaction.ts'
import type { PrepareMode } from '../parts/prepare-mode.ts'
import { mayHaveNames, tracksNames } from './pg-names.ts'
import { pipelineMessage, simpleMessage } from './pg-wire.ts'
import {
  isWireClient,
  noColumns,
  type RowShape,
  sendOnWire,
  type WireClient,
} from './pg-wire-query.ts'

const unknownPreparedStatement = '26000'

/** Of a connection: what is prepared on it, or why nothing is. */
type Names = Set<string> | 'none' | 'to be asked'

/**
 * BEGIN and the first statement of a transaction in one round trip: one pipeline of the extended
 * protocol with a single Sync, which every server and pooler understands.
 *
 * Where statements may have names (`mayHaveNames`) both are prepared once, since parsing them costs more than running
 * them. Where they may not, a shorter statement is sent, if there is one; not as long as that is not known, so that a
 * direct connection always sends the same. If the server forgot the statements
 * (DISCARD ALL), the opening is sent once more without names: it has done nothing yet.
 */
export class PgOpenings {
  readonly #names = new WeakMap<object, Names>()
  readonly #mode: PrepareMode

  constructor(mode: PrepareMode) {
    this.#mode = mode
  }

  /** Sends both, or nothing and `undefined` if this client or statement is not made for it. */
  send(client: unknown, begin: string, opening: Statement): Promise<readonly Row[]> | undefined {
    if (opening.columns === undefined || !isWireClient(client)) return undefined
    return this.#send(client, begin, opening)
  }

  async #send(client: WireClient, begin: string, opening: Statement): Promise<readonly Row[]> {
    const names = this.#mode === 'never' ? 'none' : this.#names.get(client)
    if (names === 'to be asked') {
      this.#names.set(client, (await tracksNames(client)) ? new Set() : 'none')
      return await this.#send(client, begin, opening)
    }
    if (names === 'none') return await unnamed(client, begin, opening.unprepared ?? opening)
    if (names === undefined) {
      const rows = await unnamed(client, begin, opening)
      this.#names.set(client, this.#namesOf(client, rows))
      return rows
    }
    try {
      const message = openingMessage(begin, opening, names)
      const { rows } = await sendOnWire(client, message, shapeOf(opening))
      names.add(begin).add(opening.text)
      return rows
    } catch (error) {
      if (sqlStateOf(error) !== unknownPreparedStatement) throw error
      this.#names.delete(client)
      await sendOnWire(client, simpleMessage(rollbackText), noColumns)
      return await unnamed(client, begin, opening)
    }
  }

  #namesOf(client: WireClient, [row]: readonly Row[]): Names {
    const may = mayHaveNames(this.#mode, client, row?.['pid'])
    if (may === undefined) return 'to be asked'
    return may ? new Set() : 'none'
  }
}

async function unnamed(
  client: WireClient,
  begin: string,
  opening: Statement,
): Promise<readonly Row[]> {
  const message = openingMessage(begin, opening, undefined)
  return (await sendOnWire(client, message, shapeOf(opening))).rows
}

const shapeOf = ({ columns = [] }: Statement): RowShape => ({ columns })

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
