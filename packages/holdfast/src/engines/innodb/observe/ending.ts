import type { MeantTransaction } from '../../../blocking/engine.ts'
import type { Driver, Executor, Row } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { isDenied, isNothingToEnd } from '../errno.ts'
import type { ServerFacts } from '../server.ts'
import { dialectOf } from './dialect.ts'
import { type OpenTransaction, openIn, statusStatement } from './innodb-status.ts'
import { transactionEvent } from './mysql.ts'
import { type Purpose, rightMissing } from './rights.ts'
import {
  connectionStatement,
  endConnection,
  endConnectionAt,
  endStatement,
  endStatementById,
} from './kill.ts'

/** A session that says one statement after the other may say the next between look and kill; then it is asked again. */
const attempts = 3

/** Ends a statement or a session, if it is still in the transaction that is meant. */
export async function endWork<Tx>(
  driver: Driver<Tx>,
  what: 'statement' | 'session',
  meant: MeantTransaction,
): Promise<boolean> {
  const dialect = await dialectOf(driver)
  const { alone } = driver
  const { pid } = meant
  const named = async <T>(purpose: Purpose, asked: Promise<T>): Promise<T> => {
    try {
      return await asked
    } catch (error) {
      if (!isDenied(error)) throw error
      throw await rightMissing(alone, dialect, { purpose, pid, cause: error })
    }
  }
  const look = (): Promise<Meant> => named('look', lookAt(alone, dialect, meant))
  const end = (text: string): Promise<boolean> => named('end', ended(alone, text))
  if (dialect === 'mysql') {
    const { runs } = await look()
    if (what === 'statement') return runs && (await end(endStatement(pid)))
    return (await end(endConnection(pid))) || noSession(pid)
  }
  if (what === 'statement') {
    const { runs, queryId } = await look()
    // The very statement: one that has ended meanwhile is not there, and the next one is another.
    return runs && (await end(endStatementById(queryId)))
  }
  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    const { queryId } = await look()
    if (await end(endConnectionAt(pid, queryId))) return true
  }
  await look()
  return (await end(endConnection(pid))) || noSession(pid)
}

/** The session is in the transaction that is meant. */
interface Meant {
  readonly runs: boolean
  /** Of MariaDB: of the statement that runs, or of the last one. */
  readonly queryId: number
}

async function lookAt(
  executor: Executor,
  dialect: ServerFacts['dialect'],
  meant: MeantTransaction,
): Promise<Meant> {
  const { pid, transactionId, transactionStartedAt } = meant
  // This first: without the right to read it, sessions of others are not shown either.
  const open =
    dialect === 'mariadb' ? openIn(await executor.query(statusStatement)).get(pid) : undefined
  const [row] = await executor.query(connectionStatement(pid, dialect))
  if (row === undefined || !isMeantSession(row, meant)) throw noSessionError(pid)
  const queryId = open?.queryId ?? Number(row['queryId'])
  const runs = row['command'] === 'Query' || row['command'] === 'Execute'
  const now = dialect === 'mariadb' ? mariadbId(open, queryId) : await mysqlId(executor, pid)
  // Outside of a transaction it is the statement that is meant; where none runs nobody is disturbed.
  const isOutside = dialect === 'mariadb' ? open === undefined : now?.startsWith('e') !== true
  const isMeant =
    transactionStartedAt === null
      ? isOutside && (!runs || transactionId === now)
      : transactionId !== undefined && transactionId === now
  if (!isMeant)
    throw holdfastError('OBSERVE_TRANSACTION_OVER', { details: { subject: String(pid), pid } })
  return { runs, queryId }
}

function mariadbId(open: OpenTransaction | undefined, queryId: number): string {
  return open?.number === undefined ? `q${queryId}` : `t${open.number}`
}

async function mysqlId(executor: Executor, pid: number): Promise<string | undefined> {
  const [row] = await executor.query(transactionEvent(pid))
  return row === undefined ? undefined : String(row['id'])
}

/** Numbers of sessions begin anew when a server is started; moments are told to the second. */
function isMeantSession(row: Row, { startedAt, exceptApplication }: MeantTransaction): boolean {
  const apart = Math.abs(Number(row['startedAt']) - Date.parse(startedAt) / 1_000)
  const isOther = exceptApplication !== undefined && row['application'] === exceptApplication
  return apart <= 1 && !isOther && Number(row['ours']) === 1
}

/** False if there was nothing to end any more. */
async function ended(executor: Executor, text: string): Promise<boolean> {
  try {
    await executor.query({ text, values: [] })
    return true
  } catch (error) {
    if (isNothingToEnd(error)) return false
    throw error
  }
}

function noSession(pid: number): never {
  throw noSessionError(pid)
}

function noSessionError(pid: number): Error {
  return holdfastError('OBSERVE_NO_SUCH_SESSION', { details: { subject: String(pid), pid } })
}
