import { statementFailure } from '../../../core/errors/commit-failure.ts'
import type { Driver, Executor, Row, Statement } from '../../../core/driver.ts'
import type { ErrorCode } from '../../../core/error-codes.ts'
import { holdfastError, isHoldfastError } from '../../../core/errors.ts'
import { sqlStateOf } from '../../../core/sql-state.ts'
import { firstOf } from '../../../core/within.ts'
import type { FunctionCall } from './function-call.ts'
import { joinMarker } from '../tx/join-marker.ts'
import { askAll } from '../../../tx/ask-each.ts'
import { assertNotNested } from '../../../tx/run.ts'

/**
 * Calls one of our functions: in the caller's transaction if there is one, which must really be
 * open, otherwise in one of its own. Gives its answer.
 *
 * @throws `outside` if the handle is not in a transaction, TX_NESTED, SCHEMA_MISSING
 */
export async function callFunction<Tx>(
  driver: Driver<Tx>,
  tx: Tx | undefined,
  call: FunctionCall,
  outside: ErrorCode,
): Promise<string | null> {
  try {
    if (tx !== undefined) {
      return answerOf(
        await queryJoined(driver, tx, outside, (marked) => (marked ? call.marked : call.plain)),
      )
    }
    // A second connection could wait for what this transaction holds, for ever.
    assertNotNested(driver)
    return answerOf(await driver.alone.query(call.plain))
  } catch (error) {
    const named = tx === undefined ? statementFailure(error, 'COMMIT_UNKNOWN') : error
    throw schemaMissing(named) ?? named
  }
}

/** Calls one of our functions in a transaction that is known to be open. @throws SCHEMA_MISSING */
export async function callIn(executor: Executor, { plain }: FunctionCall): Promise<string | null> {
  try {
    return answerOf(await executor.query(plain))
  } catch (error) {
    throw schemaMissing(error) ?? error
  }
}

/** Calls one of our functions that is about a whole server on every primary, and adds up. @throws SHARD_PRIMARY_FAILED */
export async function sumOverPrimaries<Tx>(
  driver: Driver<Tx>,
  call: FunctionCall,
): Promise<number> {
  assertNotNested(driver)
  const answers = await askAll(driver, (primary) =>
    callFunction(primary, undefined, call, 'SCHEMA_MISSING'),
  )
  return answers.reduce((sum, each) => sum + Number(each), 0)
}

/**
 * One statement in the caller's transaction, which must really be open. Where the client cannot tell,
 * the statement is asked for with `marked`: it then answers null unless `joinMarker` came before it.
 *
 * @throws `outside` if the handle is not in a transaction
 */
export async function queryJoined<Tx>(
  driver: Driver<Tx>,
  tx: Tx,
  outside: ErrorCode,
  statement: (marked: boolean) => Statement,
): Promise<readonly Row[]> {
  const transaction = driver.join(tx)
  const state = transaction.state()
  if (state === 'none') throw holdfastError(outside)
  if (state !== 'unknown') return await transaction.query(statement(false))
  const marking = transaction.query(joinMarker)
  // A client that pipelines spends no round trip on a statement sent right behind.
  if (driver.capabilities.pipelines !== true) await marking
  const asking = transaction.query(statement(true))
  await firstOf(marking, asking)
  const rows = await asking
  if (rows[0]?.['answer'] === null) throw holdfastError(outside)
  return rows
}

/** The one text that our functions answer. */
export function answerOf([row]: readonly Row[]): string | null {
  const answer = row?.['answer']
  return typeof answer === 'string' ? answer : null
}

const noRight = '42501'

/** No such schema, function or right to use it. */
const missingStates: ReadonlySet<string | undefined> = new Set(['3F000', '42883', noRight])

/** The error for a database in which our functions are not, if that is what went wrong. */
export function schemaMissing(error: unknown): Error | undefined {
  const state = sqlStateOf(error)
  if (isHoldfastError(error) || !missingStates.has(state)) return undefined
  const details = state === noRight ? { subject: 'the role lacks a right' } : {}
  return holdfastError('SCHEMA_MISSING', { details, cause: error })
}

const undefinedTable = '42P01'

/** The same for a statement about our own tables and views. */
export function missingSchema(error: unknown): Error | undefined {
  return sqlStateOf(error) === undefinedTable
    ? holdfastError('SCHEMA_MISSING', { cause: error })
    : schemaMissing(error)
}

/** The answer to a statement that calls functions of ours. @throws SCHEMA_MISSING */
export async function needingSchema<T>(
  asking: Promise<T>,
  missing: typeof schemaMissing = schemaMissing,
): Promise<T> {
  try {
    return await asking
  } catch (error) {
    throw missing(error) ?? error
  }
}

/** The same of statements about our own tables. */
export async function needingTables<T>(asking: Promise<T>): Promise<T> {
  return await needingSchema(asking, missingSchema)
}
