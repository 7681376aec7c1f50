import type { Statement } from '../../../core/driver.ts'
import { inOneLook, type Told } from './rows-told.ts'
import { mostLocks, type SeenServer } from './seen.ts'

/** Picoseconds, in which the performance schema counts. */
const toMs = (picoseconds: string): string => `ROUND(${picoseconds} / 1000000000)`

/** Which connection and which transaction somebody is in, and what was said last there. */
const connections = `FROM performance_schema.threads t
LEFT JOIN performance_schema.events_statements_current e ON e.THREAD_ID = t.THREAD_ID AND e.NESTING_EVENT_LEVEL = 0
LEFT JOIN performance_schema.events_transactions_current x ON x.THREAD_ID = t.THREAD_ID AND x.STATE = 'ACTIVE'`

/** Names the transaction that somebody is in, or else the statement: what comes after it on the same connection is another. */
const event = `COALESCE(CONCAT('e', x.THREAD_ID, '.', x.EVENT_ID), CONCAT('s', e.THREAD_ID, '.', e.EVENT_ID))`

/** The clock of its timers: how far the statement that asks has come. */
const timerNow = `(SELECT o.TIMER_END FROM performance_schema.events_statements_current o
    JOIN performance_schema.threads m ON m.THREAD_ID = o.THREAD_ID
    WHERE m.PROCESSLIST_ID = CONNECTION_ID() AND o.NESTING_EVENT_LEVEL = 0)`

/** Who has a lock is told by the transaction: the thread is that which made it, which may be one that waits. */
export function lookAtMysql(asked: number | undefined, statementTimeoutMs: number): Statement {
  const parts = [
    {
      kind: 'look',
      columns: [
        'UNIX_TIMESTAMP(NOW(6))',
        'DATABASE()',
        "(SELECT VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME = 'Uptime')",
      ],
      from: '',
    },
    {
      kind: 'wait',
      columns: [
        'REQUESTING_ENGINE_TRANSACTION_ID',
        'REQUESTING_ENGINE_LOCK_ID',
        'BLOCKING_ENGINE_TRANSACTION_ID',
        'BLOCKING_ENGINE_LOCK_ID',
      ],
      from: `FROM performance_schema.data_lock_waits
ORDER BY BLOCKING_ENGINE_LOCK_ID IN (SELECT r.REQUESTING_ENGINE_LOCK_ID FROM performance_schema.data_lock_waits r)
LIMIT ${mostLocks + 1}`,
    },
    {
      kind: 'lock',
      columns: [
        'l.ENGINE_LOCK_ID',
        'l.LOCK_MODE',
        'l.LOCK_TYPE',
        'l.OBJECT_SCHEMA',
        'l.OBJECT_NAME',
        'l.INDEX_NAME',
        'l.LOCK_DATA',
      ],
      from: `FROM (SELECT REQUESTING_ENGINE_LOCK_ID AS id FROM performance_schema.data_lock_waits
  UNION SELECT BLOCKING_ENGINE_LOCK_ID FROM performance_schema.data_lock_waits) w
JOIN performance_schema.data_locks l ON l.ENGINE_LOCK_ID = w.id LIMIT ${mostLocks + 1}`,
    },
    {
      kind: 'transaction',
      columns: [
        'trx_id',
        'trx_mysql_thread_id',
        'UNIX_TIMESTAMP(trx_started)',
        'UNIX_TIMESTAMP(trx_wait_started)',
      ],
      from: 'FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id <> CONNECTION_ID()',
    },
    {
      kind: 'metadata',
      columns: [
        'pt.PROCESSLIST_ID',
        'p.OBJECT_TYPE',
        'p.OBJECT_SCHEMA',
        'p.OBJECT_NAME',
        'p.LOCK_TYPE',
        'gt.PROCESSLIST_ID',
        'g.LOCK_TYPE',
        'g.LOCK_STATUS',
      ],
      from: `FROM performance_schema.metadata_locks p
JOIN performance_schema.metadata_locks g ON g.OBJECT_TYPE = p.OBJECT_TYPE AND g.OBJECT_SCHEMA <=> p.OBJECT_SCHEMA
  AND g.OBJECT_NAME <=> p.OBJECT_NAME AND g.OWNER_THREAD_ID <> p.OWNER_THREAD_ID
JOIN performance_schema.threads pt ON pt.THREAD_ID = p.OWNER_THREAD_ID
JOIN performance_schema.threads gt ON gt.THREAD_ID = g.OWNER_THREAD_ID
WHERE p.LOCK_STATUS = 'PENDING' LIMIT ${mostLocks + 1}`,
    },
    {
      kind: 'connection',
      columns: [
        't.PROCESSLIST_ID',
        't.PROCESSLIST_USER',
        't.PROCESSLIST_HOST',
        't.PROCESSLIST_DB',
        't.PROCESSLIST_COMMAND',
        `CASE WHEN t.PROCESSLIST_COMMAND = 'Sleep' THEN ${toMs(`(${timerNow} - e.TIMER_END)`)} ELSE ${toMs('e.TIMER_WAIT')} END`,
        't.PROCESSLIST_TIME * 1000',
        't.PROCESSLIST_STATE',
        'LEFT(COALESCE(t.PROCESSLIST_INFO, e.SQL_TEXT), 2000)',
        event,
        toMs('x.TIMER_WAIT'),
        "(SELECT a.ATTR_VALUE FROM performance_schema.session_connect_attrs a WHERE a.PROCESSLIST_ID = t.PROCESSLIST_ID AND a.ATTR_NAME = 'program_name')",
      ],
      from: `${connections}
WHERE t.PROCESSLIST_ID IS NOT NULL AND t.PROCESSLIST_ID <> CONNECTION_ID() AND t.PROCESSLIST_COMMAND <> 'Daemon' AND (
  x.THREAD_ID IS NOT NULL OR t.PROCESSLIST_STATE LIKE 'Waiting for%lock' OR t.PROCESSLIST_STATE = 'User lock'
  OR t.PROCESSLIST_ID IN (SELECT trx_mysql_thread_id FROM information_schema.INNODB_TRX)
  OR t.THREAD_ID IN (SELECT g.OWNER_THREAD_ID FROM performance_schema.metadata_locks g
    JOIN performance_schema.metadata_locks p ON p.LOCK_STATUS = 'PENDING' AND g.OBJECT_TYPE = p.OBJECT_TYPE
      AND g.OBJECT_SCHEMA <=> p.OBJECT_SCHEMA AND g.OBJECT_NAME <=> p.OBJECT_NAME)
  OR t.PROCESSLIST_ID = ?)`,
      values: [asked ?? null],
    },
  ]
  return inOneLook(parts, statementTimeoutMs)
}

/** Reads what `lookAtMysql` answers. */
export function seenOnMysql(told: Told): SeenServer {
  const [[at, database, uptime] = []] = told('look')
  const waits = told('wait').map(([by = '', lock = '', blocker = '', blockingLock = '']) => ({
    by,
    lock,
    blocker,
    blockingLock,
  }))
  const locks = told('lock').map(
    ([id = '', mode = '', type, schema = '', table = '', index, data]) => ({
      id,
      mode,
      isRow: type === 'RECORD',
      database: schema,
      table,
      index,
      data,
    }),
  )
  return {
    at: Number(at),
    startedAt: Math.floor(Number(at)) - Number(uptime),
    database,
    transactions: told('transaction').map(([id = '', pid, startedAt, waitsSince]) => ({
      id,
      pid: Number(pid),
      startedAt: Number(startedAt),
      waitsSince: waitsSince === undefined ? undefined : Number(waitsSince),
      wantedLock: undefined,
      hasLocks: true,
    })),
    waits: waits.slice(0, mostLocks),
    locks: locks.slice(0, mostLocks),
    connections: told('connection').map(
      ([
        pid,
        user,
        client,
        db,
        command,
        ms,
        seconds,
        doing,
        query,
        event,
        openMs,
        application,
      ]) => ({
        pid: Number(pid),
        user: user ?? '',
        client,
        database: db,
        application: application ?? '',
        command: command ?? '',
        stateMs: Number(ms ?? seconds ?? 0),
        doing: doing ?? '',
        query: query ?? '',
        transactionId: event,
        transactionMs: openMs === undefined ? undefined : Number(openMs),
      }),
    ),
    metadataWaits: told('metadata').map(
      ([pid, type = '', schema, name, wanted = '', by, held = '', status]) => ({
        pid: Number(pid),
        type,
        database: schema,
        name,
        wanted,
        by: Number(by),
        held,
        isGranted: status === 'GRANTED',
      }),
    ),
    capped: waits.length > mostLocks || locks.length > mostLocks,
  }
}

/** Whether a transaction, or a statement without one, is the one that was named by the look. */
export function transactionEvent(pid: number): Statement {
  return {
    text: `SELECT ${event} AS id
${connections}
WHERE t.PROCESSLIST_ID = ?`,
    values: [pid],
  }
}
