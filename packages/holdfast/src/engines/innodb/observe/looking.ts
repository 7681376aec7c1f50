import type { BlockingEngine, LookLimits, Seen } from '../../../blocking/engine.ts'
import type { Driver, Executor } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { lockMemoryOf } from '../../../core/locks/lock-memory.ts'
import { isDenied, isMissingTable, waitEndedBy } from '../errno.ts'
import { lockTable } from '../schema/lock-table.ts'
import type { ServerFacts } from '../server.ts'
import { adviceWords } from './advice-words.ts'
import { dialectOf } from './dialect.ts'
import { endWork } from './ending.ts'
import { committedRows, heldRows, writtenRows } from './held-rows.ts'
import { lookAtMariadb, seenOnMariadb } from './mariadb.ts'
import { lookAtMysql, seenOnMysql } from './mysql.ts'
import { type HeldRow, Picture } from './picture.ts'
import { rightMissing } from './rights.ts'
import { toldBy } from './rows-told.ts'
import type { SeenServer } from './seen.ts'

/** Names what a look has failed with. */
async function lookFailure(
  executor: Executor,
  dialect: ServerFacts['dialect'],
  error: unknown,
): Promise<unknown> {
  if (isDenied(error))
    return await rightMissing(executor, dialect, { purpose: 'look', pid: 0, cause: error })
  return waitEndedBy(error) === 'ours' ? holdfastError('OBSERVE_TIMEOUT', { cause: error }) : error
}

async function lookAt<Tx>(
  driver: Driver<Tx>,
  asked: number | undefined,
  { statementTimeoutMs }: LookLimits,
): Promise<SeenServer> {
  const { alone } = driver
  const dialect = await dialectOf(driver)
  try {
    if (dialect === 'mariadb')
      return seenOnMariadb(toldBy(await alone.query(lookAtMariadb(asked, statementTimeoutMs))))
    return seenOnMysql(toldBy(await alone.query(lookAtMysql(asked, statementTimeoutMs))))
  } catch (error) {
    throw await lookFailure(alone, dialect, error)
  }
}

/** Rows of locks that somebody holds, and whether there may be more. */
interface Held {
  readonly rows: readonly HeldRow[]
  readonly capped: boolean
}

/**
 * Who has written rows of locks and not committed. Read by their numbers first, as they are, and then as they were
 * committed: a row that says the same both times is nobody's. Without the table, or the right to read it, nothing: names of
 * locks that somebody waits for are told without it.
 */
async function holdersIn(
  executor: Executor,
  table: string,
  seen: SeenServer,
  { statementTimeoutMs }: LookLimits,
): Promise<Held> {
  const pids = seen.transactions.map(({ pid }) => pid).filter((pid) => pid > 0)
  if (pids.length === 0) return { rows: [], capped: false }
  try {
    const found = await executor.query(writtenRows(table, pids, statementTimeoutMs))
    const { written, capped } = heldRows(found)
    if (written.length === 0) return { rows: [], capped }
    const names = written.map(({ row }) => row)
    const rows = await executor.query(committedRows(table, names, statementTimeoutMs))
    const committed = new Map(rows.map((row) => [String(row['name']), String(row['seq'])]))
    return { rows: written.filter(({ row, seq }) => committed.get(row) !== seq), capped }
  } catch (error) {
    if (waitEndedBy(error) === 'ours') return { rows: [], capped: true }
    if (isMissingTable(error) || isDenied(error)) return { rows: [], capped: false }
    throw error
  }
}

/** Who blocks whom on MariaDB and MySQL; the tables are in this database, or in that of the connection. */
export function innodbBlocking(database?: string): BlockingEngine {
  const look = async <Tx>(
    driver: Driver<Tx>,
    asked: number | undefined,
    limits: LookLimits,
  ): Promise<Seen> => {
    const seen = await lookAt(driver, asked, limits)
    const place = database ?? seen.database
    const { rows: held, capped } =
      place === undefined
        ? { rows: [], capped: false }
        : await holdersIn(driver.alone, lockTable(place), seen, limits)
    const memory = lockMemoryOf(driver)
    const told = new Picture(seen, { database: place, memory, held }).told()
    return { ...told, capped: told.capped || capped }
  }
  return {
    of: 'innodb',
    adviceWords,
    look,
    end: (driver, what, meant) => endWork(driver, what, meant),
  }
}
