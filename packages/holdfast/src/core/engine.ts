import type { Isolation, Statement } from './driver.ts'

/** Database products that Holdfast knows. */
export type EngineName = 'postgres'

/** What every transaction needs to know about the database that a driver speaks to. Each room asks for its own part beside it. */
export interface Engine {
  readonly name: EngineName
  /** The levels that it has; also where nobody checks types, because they become a part of SQL. */
  readonly isolations: readonly Isolation[]
  /** A question without any work: whoever does not answer it answers nothing. */
  readonly ping: Statement
  /** Names the open transaction, as `pid` and `began`. */
  readonly whichTransaction: Statement
  /** The same, and from now on no statement of it runs for longer than what is left to its deadline. */
  limitTransaction(leftMs: number): Statement
  /** Ends what that transaction is running, and nothing else. */
  cancelTransaction(pid: number, began: string): Statement
  /** Commits something that changes nothing, so that all that was committed before it is as safe as it can be. */
  readonly waitForStandby: Statement
}
