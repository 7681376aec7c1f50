import type { Engine } from '../../core/engine.ts'
import { sqlStateOf } from '../../core/sql-state.ts'
import { whichBackend } from './tx/session.ts'
import {
  cancelTransaction,
  isolations,
  limitTransaction,
  waitForStandby,
  whichTransaction,
} from './tx/transaction.ts'

/** What transactions need to know about PostgreSQL. */
export const postgres: Engine = {
  name: 'postgres',
  isolations,
  ping: whichBackend,
  whichTransaction,
  limitTransaction,
  cancelTransaction,
  waitForStandby,
  codeOf: sqlStateOf,
}
