import type { Scope } from './bucket.ts'

/** What may be bound to a placeholder. Text and numbers only, so that every client binds it the same way. */
export type Value = string | number | boolean | null

/** Values in the binary formats of the server's protocol, each with its length in front. */
export interface PackedValues {
  readonly count: number
  /** They take no more than this. */
  readonly bytes: number
  /** Writes them; gives where they end. */
  write(to: Buffer, at: number): number
}

/** One SQL text with its values. Placeholders are those of the engine: `$1…$n` of PostgreSQL, `?` of the others. */
export interface Statement {
  readonly text: string
  readonly values: readonly Value[]
  /** The same values, for a driver that speaks the protocol itself. */
  readonly packed?: PackedValues | undefined
  /** Says that it may be prepared, where a driver knows that to be safe; and, for people, what it is. */
  readonly name?: string
  /**
   * The columns that come back, all of them readable as text, for a driver that does not ask the
   * server. In the opening of a transaction one of them is the backend's `pid`, by which a pooler is
   * found out.
   */
  readonly columns?: readonly string[]
  /**
   * Of an opening: a shorter one for where it would be parsed every time, which costs more than what it does. It may
   * grant less, and then has to be followed by a whole one.
   */
  readonly unprepared?: Statement
  /** What it touches; a sharded driver routes by it and has the server check it, a plain one ignores it. */
  readonly scopes?: readonly Scope[]
  /** On its own: if there is no connection within so many milliseconds, it is not sent any more, where a driver can. */
  readonly connectWithinMs?: number
  /** On its own, of InnoDB: it reads also what is not committed yet. That is how one sees who holds a lock. */
  readonly uncommitted?: boolean
}

/** PostgreSQL's isolation levels, as SQL spells them. */
export type Isolation = 'read committed' | 'repeatable read' | 'serializable'

/** Database products that Holdfast knows. */
export type EngineName = 'postgres' | 'innodb' | 'sqlite'

/** What every transaction needs to know about the database that a driver speaks to. Each room asks for its own part beside it. */
export interface Engine {
  readonly name: EngineName
  /** The levels that it has; also where nobody checks types, because they become a part of SQL. */
  readonly isolations: readonly Isolation[]
  /** A question without any work: whoever does not answer it answers nothing. */
  readonly ping: Statement
  /** Names the open transaction, as `pid` and `began`. */
  readonly whichTransaction: Statement
  /**
   * The same, and from now on no statement of it runs for longer than what is left to its deadline. Nothing where no
   * statement can promise that; then the driver's transactions have a `cancel`.
   */
  limitTransaction(leftMs: number): Statement | undefined
  /** Ends what that transaction is running, and nothing else. */
  cancelTransaction(pid: number, began: string): Statement
  /**
   * Commits something that changes nothing, so that all that was committed before it is as safe as it can be; nothing
   * where no statement can promise that.
   */
  readonly waitForStandby: Statement | undefined
  /** The code by which a retry policy knows an error of the server, if it is one: 40001, 40P01, or one of its own. */
  codeOf(error: unknown): string | undefined
}
