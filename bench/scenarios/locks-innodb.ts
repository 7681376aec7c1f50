import { startInnodb } from '@holdfast/testkit'
import { createPool, type Pool, type PoolConnection } from 'mysql2/promise'
import { fromMysql2 } from '../../packages/holdfast/src/drivers/mysql2.ts'
import { createHoldfast, lockKey, migrate } from '../../packages/holdfast/src/mysql.ts'
import type { BenchResult, Engine } from '../harness/bench-scenario.ts'
import { type Comparison, compare, type Contest, type Effort } from '../harness/compare.ts'
import { meterOf } from '../harness/meter.ts'

const workers = 16
const keys = 1_000

/** On its defaults: what is committed is on the disk. */
const durable = { 'innodb-flush-log-at-trx-commit': '1', 'sync-binlog': '1' }

const servers = { mariadb: 'mariadb-10', mysql: 'mysql-9' } as const

/** What a guard does to be one, and nothing of what makes it safe. */
const byHand = `INSERT INTO holdfast_lock (name, seq, stamp, conn, since) VALUES (?, 1, 1, CONNECTION_ID(), 0)
ON DUPLICATE KEY UPDATE seq = seq + 1, stamp = 1, conn = CONNECTION_ID(), since = 0`

const anyKey = (): number => Math.floor(Math.random() * keys)

async function openPool(uri: string): Promise<Pool> {
  const pool = createPool({ uri, connectionLimit: workers, maxIdle: workers })
  const all = await Promise.all(Array.from({ length: workers }, () => pool.getConnection()))
  for (const connection of all) connection.release()
  return pool
}

async function inTransaction(
  pool: Pool,
  body: (connection: PoolConnection) => Promise<unknown>,
): Promise<void> {
  const connection = await pool.getConnection()
  try {
    await connection.query('BEGIN')
    await body(connection)
    await connection.query('COMMIT')
  } catch (error) {
    await connection.query('ROLLBACK')
    throw error
  } finally {
    connection.release()
  }
}

/** What a guard costs on MariaDB or MySQL. */
export async function innodbLocks(
  engine: Exclude<Engine, 'sqlite'>,
  effort: Effort,
  progress: (text: string) => void,
): Promise<BenchResult> {
  progress(`starting ${servers[engine]}`)
  await using server = await startInnodb(servers[engine], durable)
  const pool = await openPool(await server.createDatabase('bench'))
  try {
    const driver = fromMysql2(pool)
    await migrate(driver)
    const hf = createHoldfast(driver)
    const comparisons: Comparison[] = []
    const guarded = (label: string, body: (tx: PoolConnection) => Promise<unknown>) => ({
      label,
      operation: async () => await hf.guard(lockKey('bench', anyKey()), body),
    })
    const bare = (label: string, body: (tx: PoolConnection) => Promise<unknown>) => ({
      label,
      operation: async () =>
        await inTransaction(pool, async (connection) => {
          await connection.execute(byHand, [`bench:${anyKey()}`])
          await body(connection)
        }),
    })
    const contests: readonly Contest[] = [
      {
        name: 'guard_vs_bare',
        workers,
        bar: 0.85,
        measured: guarded('guard, one of 1,000 keys', async () => undefined),
        baseline: bare('BEGIN, the lock statement, COMMIT', async () => undefined),
      },
      {
        name: 'guard_vs_bare_two_statements',
        workers,
        measured: guarded('guard, and a look and a write', lookAndWrite),
        baseline: bare('the same by hand', lookAndWrite),
      },
    ]
    await pool.query('CREATE TABLE item (id INT PRIMARY KEY, n INT NOT NULL) ENGINE=InnoDB')
    for (let id = 0; id < keys; id += 1) await pool.query('INSERT INTO item VALUES (?, 0)', [id])
    const meter = meterOf({ threads: server.pid })
    for (const contest of contests)
      comparisons.push(...(await compare(contest, effort, progress, meter)))
    return { comparisons, method }
  } finally {
    await pool.end()
  }
}

async function lookAndWrite(tx: PoolConnection): Promise<void> {
  const id = anyKey()
  await tx.execute('SELECT n FROM item WHERE id = ?', [id])
  await tx.execute('UPDATE item SET n = n + 1 WHERE id = ?', [id])
}

const method =
  'Server and client on one machine, durable as by default (innodb_flush_log_at_trx_commit=1, sync_binlog=1), mysql2, one ' +
  'process, 16 operations under way on a pool of 16 connections that are opened beforehand; both sides use the same pool ' +
  'and the same table. Slices of both sides in turn, the side that goes first alternating; one ratio per round; the ' +
  'median of the rounds with p10 and p90. `_cpu` is what an operation costs of a processor, server and client ' +
  'together, from the same slices. guard has its default options.'
