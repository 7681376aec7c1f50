import type { Driver, Statement } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import {
  isCancelled,
  limitStatements,
  moveRefusal,
  moveStep,
} from '../engines/postgres/shard-moves.ts'
import { askAgain } from '../tx/ask-again.ts'
import { answerOf, schemaMissing } from '../tx/call-function.ts'

/** What one server has written down about a move, and how its part of it stands. */
export interface MoveJournal {
  readonly id: string
  readonly buckets: readonly number[]
  readonly source: string
  readonly target: string
  readonly step: 'copying' | 'leaving' | 'clearing' | 'taken' | 'undone' | 'done'
  readonly detail: { readonly tables?: readonly string[]; readonly slots?: string }
  readonly ended: boolean
  readonly subscribed: boolean
  readonly tables: number
  readonly ready: number
  /** How often receiving has failed; null where nothing is received. */
  readonly failures: number | null
  /** Bytes of WAL that the target has not confirmed; null without a slot. */
  readonly behind: number | null
  readonly arrived: boolean
  readonly versions: readonly number[]
}

/** For how long a server that cannot be reached is waited for: longer than a restart or a failover takes. */
const asking = { forMs: 30_000, on: ['55P03', 'HF005'] }

/**
 * One of the two servers of a move. Every call is a transaction of its own that looks at the journal first
 * and does nothing a second time, so that it can be made again if its answer was lost.
 */
export class MoveSide<Tx> {
  readonly name: string
  readonly schema: string
  readonly #driver: Driver<Tx>

  constructor(name: string, driver: Driver<Tx>, schema: string) {
    this.name = name
    this.schema = schema
    this.#driver = driver
  }

  /** @throws SHARD_MOVE_REFUSED, SHARD_MOVE_OVERTAKEN, SCHEMA_MISSING */
  async ask(statement: Statement): Promise<string | null> {
    try {
      return answerOf(await askAgain(() => this.#driver.alone.query(statement), asking))
    } catch (error) {
      throw typed(error, this.name)
    }
  }

  /** The same, given up after so long; then it is undefined. */
  async askWithin(ms: number, statement: Statement): Promise<string | null | undefined> {
    try {
      const send = (): Promise<string | null> =>
        this.#driver.transaction(
          async (transaction) => {
            await transaction.query(limitStatements(ms))
            return answerOf(await transaction.query(statement))
          },
          { scopes: [] },
        )
      return await askAgain(send, asking)
    } catch (error) {
      if (isCancelled(error)) return undefined
      throw typed(error, this.name)
    }
  }

  async step(name: Parameters<typeof moveStep>[1], id: string): Promise<string | null> {
    return await this.ask(moveStep(this.schema, name, id))
  }

  /** Nothing if this server does not know the move. */
  async journal(id: string): Promise<MoveJournal | undefined> {
    const answer = await this.step('read_move', id)
    return answer === null ? undefined : (JSON.parse(answer) as MoveJournal)
  }
}

const codes = {
  refused: 'SHARD_MOVE_REFUSED',
  overtaken: 'SHARD_MOVE_OVERTAKEN',
  unreachable: 'SHARD_MOVE_STALLED',
} as const

function typed(error: unknown, name: string): unknown {
  const refusal = moveRefusal(error)
  if (refusal === undefined) return schemaMissing(error) ?? error
  // Where the text is one of our own functions', it contains no value.
  const why =
    refusal === 'unreachable' ? 'it cannot connect to the source' : (error as Error).message
  return holdfastError(codes[refusal], { details: { subject: `${name}: ${why}` }, cause: error })
}
