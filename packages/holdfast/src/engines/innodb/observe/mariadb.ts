import type { Statement } from '../../../core/driver.ts'
import { inOneLook, type Told } from './rows-told.ts'
import { mostLocks, type SeenRowLock, type SeenServer } from './seen.ts'

/**
 * `INNODB_TRX`, `INNODB_LOCKS` and `INNODB_LOCK_WAITS` are of one moment; it may be a tenth of a second ago, and longer if
 * somebody looks at them more often than that.
 */
export function lookAtMariadb(asked: number | undefined, statementTimeoutMs: number): Statement {
  const parts = [
    {
      kind: 'look',
      columns: [
        'UNIX_TIMESTAMP(NOW(6))',
        'DATABASE()',
        "(SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'UPTIME')",
      ],
      from: '',
    },
    {
      kind: 'transaction',
      columns: [
        'trx_id',
        'trx_mysql_thread_id',
        'UNIX_TIMESTAMP(trx_started)',
        'UNIX_TIMESTAMP(trx_wait_started)',
        'trx_requested_lock_id',
        'trx_rows_locked + trx_tables_locked',
      ],
      from: 'FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id <> CONNECTION_ID()',
    },
    {
      // A lock that is waited for itself stands only further ahead in the queue: in the way are those that are held.
      kind: 'wait',
      columns: ['requesting_trx_id', 'requested_lock_id', 'blocking_trx_id', 'blocking_lock_id'],
      from: `FROM information_schema.INNODB_LOCK_WAITS
ORDER BY blocking_lock_id IN (SELECT trx_requested_lock_id FROM information_schema.INNODB_TRX WHERE trx_requested_lock_id IS NOT NULL)
LIMIT ${mostLocks + 1}`,
    },
    {
      kind: 'lock',
      columns: ['lock_id', 'lock_mode', 'lock_type', 'lock_table', 'lock_index', 'lock_data'],
      from: `FROM information_schema.INNODB_LOCKS LIMIT ${mostLocks + 1}`,
    },
    {
      kind: 'connection',
      columns: [
        'ID',
        'USER',
        'HOST',
        'DB',
        'COMMAND',
        'TIME_MS',
        'STATE',
        'LEFT(INFO, 2000)',
        'QUERY_ID',
      ],
      from: `FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND (
  ID IN (SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX) OR STATE LIKE 'Waiting for%lock' OR STATE = 'User lock'
  OR ID = ?)`,
      values: [asked ?? null],
    },
  ]
  return inOneLook(parts, statementTimeoutMs)
}

/** Reads what `lookAtMariadb` answers. */
export function seenOnMariadb(told: Told): SeenServer {
  const [[at, database, uptime] = []] = told('look')
  const numbers = new Map<number, string>()
  const transactions = told('transaction').map(
    ([id = '0', pid, startedAt, waitsSince, wantedLock, locks]) => {
      if (id !== '0') numbers.set(Number(pid), id)
      return {
        id,
        pid: Number(pid),
        startedAt: Number(startedAt),
        waitsSince: waitsSince === undefined ? undefined : Number(waitsSince),
        wantedLock,
        hasLocks: Number(locks) > 0,
      }
    },
  )
  const waits = told('wait').map(([by = '', lock = '', blocker = '', blockingLock = '']) => ({
    by,
    lock,
    blocker,
    blockingLock,
  }))
  const locks = told('lock').map(lockOf)
  return {
    at: Number(at),
    startedAt: Math.floor(Number(at)) - Number(uptime),
    database,
    transactions,
    waits: waits.slice(0, mostLocks),
    locks: locks.slice(0, mostLocks),
    connections: told('connection').map(
      ([pid, user, client, itsDatabase, command, ms, doing, query, queryId]) => ({
        pid: Number(pid),
        user: user ?? '',
        client,
        database: itsDatabase,
        application: '',
        command: command ?? '',
        stateMs: Number(ms),
        doing: doing ?? '',
        query: query ?? '',
        // One that has written nothing has no number; but as long as its last statement is the same, so is it.
        transactionId: idOf(numbers.get(Number(pid)), queryId),
        transactionMs: undefined,
      }),
    ),
    metadataWaits: [],
    capped: waits.length > mostLocks || locks.length > mostLocks,
  }
}

function idOf(number: string | undefined, queryId: string | undefined): string | undefined {
  if (number !== undefined) return `t${number}`
  return queryId === undefined ? undefined : `q${queryId}`
}

/** Both parts are quoted; of a partition a comment follows. */
const quotedTable = /^`((?:[^`]|``)*)`\.`((?:[^`]|``)*)`/

function lockOf([id = '', mode = '', type, table = '', index, data]: readonly (
  | string
  | undefined
)[]): SeenRowLock {
  const [, schema = '', name = table] = quotedTable.exec(table) ?? []
  const plain = (text: string): string => text.replaceAll('``', '`')
  const isRow = type === 'RECORD'
  return { id, mode, isRow, database: plain(schema), table: plain(name), index, data }
}
