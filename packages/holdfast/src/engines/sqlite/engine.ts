import type { Engine } from '../../core/engine.ts'
import { codeOf } from './result-code.ts'
import { ping } from './tx/transaction.ts'

/** `Engine` of SQLite. */
export interface SqliteEngine extends Engine {
  readonly name: 'sqlite'
}

/** What transactions need to know about SQLite. */
export const sqlite: SqliteEngine = {
  name: 'sqlite',
  // All transactions are serializable, so whichever level is asked for is given at least.
  isolations: ['read committed', 'repeatable read', 'serializable'],
  ping,
  whichTransaction: ping,
  // A statement runs in the caller's own thread: nobody else could end it. What is waited for, our drivers' `cancel` ends.
  limitTransaction: () => undefined,
  cancelTransaction: () => ping,
  waitForStandby: undefined,
  codeOf,
}
