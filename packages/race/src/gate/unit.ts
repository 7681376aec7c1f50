import type { Answer, Place, TransactionState } from '../core/model.ts'

/** What one connection wants to send next, as the scheduler sees it. */
export interface Unit {
  /** Statements as sent; several only if a simple query or a pipeline held several. */
  readonly statements: readonly string[]
  /** Parameters as text. Unknown, and empty, while a client still asks for their types. */
  readonly parameters: readonly (string | null)[]
  /** Object ids of their types; 0 where the server chooses, -1 where the text may not be the value. */
  readonly parameterTypes: readonly number[]
  /** In autocommit it can be executed and committed one after the other. */
  readonly splittable: boolean
  /** Ends what an earlier unit of the same cycle executed: a Sync by itself. */
  readonly closesCycle: boolean
  /** Asks for further rows of a portal that an earlier unit has opened. */
  readonly continues?: boolean
  /** Where it was asked for, if that is known. */
  readonly from?: Place
  /** The trace that a comment of its own text names. */
  readonly trace?: string
}

/** How a unit that was let pass came to rest at the server. */
export interface Settlement {
  readonly unit: Unit
  readonly answer: Answer
  readonly before: TransactionState
  readonly after: TransactionState
  /** Executed, and its Sync held back: not committed, its locks kept. */
  readonly held: boolean
}

/** How a unit is let pass. */
export interface Passage {
  /** Hold the Sync back if the unit is splittable and no transaction is open. */
  readonly split: boolean
  /** Whether the client gets the answer. */
  readonly deliver: boolean
}

/** A function call of the old protocol, which has no text. */
export const functionCallText = '-- function call'

export const commitOnlyText = '-- Sync: ends what was executed'
