import type { Driver, Statement } from '../core/driver.ts'
import { statementFailure } from '../core/errors/commit-failure.ts'
import { holdfastError, isHoldfastError } from '../core/errors.ts'
import {
  isCancelled,
  limitStatements,
  moveRefusal,
  moveStep,
} from '../engines/postgres/shards/moves.ts'
import { readShards } from '../engines/postgres/shards/shards.ts'
import { askAgain } from '../tx/ask-again.ts'
import { heard, neededOf } from '../tx/ask-each.ts'
import { answerOf, schemaMissing } from '../engines/postgres/sql/call-function.ts'
import type { ShardReading } from './shard-map.ts'

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

  /** What it answers now: nobody is waited for. @throws as `ask`, and SHARD_NO_ANSWER */
  async look(statement: Statement): Promise<string | null> {
    const { alone, engine } = this.#driver
    try {
      return answerOf(await heard(alone, engine, () => alone.query(statement)))
    } catch (error) {
      throw typed(error, this.name)
    }
  }

  /** What it knows about where buckets are. @throws SHARD_MAP_MISSING, SHARD_MAP_INVALID, and as `look` */
  async reading(): Promise<ShardReading> {
    const answer = await this.look(readShards(this.schema))
    if (answer === null) {
      throw holdfastError('SHARD_MAP_MISSING', { details: { subject: this.name } })
    }
    return JSON.parse(answer) as ShardReading
  }

  /** @throws SHARD_MOVE_REFUSED, SHARD_MOVE_OVERTAKEN, SHARD_MOVE_INCOMPLETE, SCHEMA_MISSING, SHARD_PRIMARY_NEEDED */
  async ask(statement: Statement): Promise<string | null> {
    try {
      return answerOf(await askAgain(() => this.#driver.alone.query(statement), asking))
    } catch (error) {
      throw named(typed(error, this.name), this.name)
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
      throw named(typed(error, this.name), this.name)
    }
  }

  async step(name: Parameters<typeof moveStep>[1], id: string): Promise<string | null> {
    return await this.ask(moveStep(this.schema, name, id))
  }

  /** The same, without waiting for a server that cannot be reached. */
  async lookUp(id: string): Promise<MoveJournal | undefined> {
    const answer = await this.look(moveStep(this.schema, 'read_move', id))
    return answer === null ? undefined : (JSON.parse(answer) as MoveJournal)
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
  incomplete: 'SHARD_MOVE_INCOMPLETE',
} as const

function typed(error: unknown, name: string): unknown {
  const refusal = moveRefusal(error)
  if (refusal === undefined) {
    return schemaMissing(error) ?? statementFailure(error, 'COMMIT_UNKNOWN')
  }
  // Where the text is one of our own functions', it contains no value.
  const why =
    refusal === 'unreachable' ? 'it cannot connect to the source' : (error as Error).message
  return holdfastError(codes[refusal], { details: { subject: `${name}: ${why}` }, cause: error })
}

/** What a primary answers, which is named if it could not be reached. @throws SHARD_PRIMARY_NEEDED */
export async function ofPrimary<T>(primary: string, asking: Promise<T>): Promise<T> {
  try {
    return await asking
  } catch (error) {
    throw named(error, primary)
  }
}

function named(error: unknown, primary: string): unknown {
  const isUnreached = isHoldfastError(error, ...unreached)
  return isUnreached ? neededOf([{ primary, error }]) : error
}

const unreached = [
  'CONNECTION_UNAVAILABLE',
  'CONNECTION_LOST',
  'COMMIT_UNKNOWN',
  'POOL_STARVED',
  'SHARD_NO_ANSWER',
] as const
