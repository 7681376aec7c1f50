import type { Engine } from '../../core/engine.ts'
import { codeOf } from './errno.ts'
import { cancelText, isolations } from './tx/transaction.ts'

/** `Engine` of MariaDB and MySQL. */
export interface InnodbEngine extends Engine {
  readonly name: 'innodb'
}

const whichTransaction = { text: 'SELECT CONNECTION_ID() AS pid, 0 AS began', values: [] } as const

/** What transactions need to know about MariaDB and MySQL. */
export const innodb: InnodbEngine = {
  name: 'innodb',
  isolations,
  ping: { text: 'SELECT 1', values: [] },
  whichTransaction,
  // Neither product limits all statements of one transaction: a session's limit would stay in the pool.
  limitTransaction: () => whichTransaction,
  // Of another transaction on the same connection as well; our drivers bring a `cancel` that knows better.
  cancelTransaction: (pid) => ({ text: cancelText(pid), values: [] }),
  waitForStandby: undefined,
  codeOf,
}
