import type { Driver, Row, Transaction } from '../core/driver.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { holdfastError } from '../core/errors.ts'
import { sqlStateOf } from '../core/sql-state.ts'
import { type FunctionCall, joinMarker } from '../engines/postgres/function-call.ts'
import { assertNotNested } from './run.ts'

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
    if (tx !== undefined) return await callJoined(driver, driver.join(tx), call, outside)
    // A second connection could wait for what this transaction holds, for ever.
    assertNotNested(driver)
    return answerOf(await driver.alone.query(call.plain))
  } catch (error) {
    throw schemaMissing(error) ?? error
  }
}

async function callJoined<Tx>(
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  call: FunctionCall,
  outside: ErrorCode,
): Promise<string | null> {
  const state = transaction.state()
  if (state === 'none') throw holdfastError(outside)
  if (state !== 'unknown') return answerOf(await transaction.query(call.plain))
  const marking = transaction.query(joinMarker)
  // A client that pipelines spends no round trip on a statement sent right behind.
  if (!driver.capabilities.pipelines) await marking
  const [, rows] = await Promise.all([marking, transaction.query(call.marked)])
  const answer = answerOf(rows)
  if (answer === null) throw holdfastError(outside)
  return answer
}

/** The one text that our functions answer. */
export function answerOf([row]: readonly Row[]): string | null {
  const answer = row?.['answer']
  return typeof answer === 'string' ? answer : null
}

/** No such schema, function or right to use it. */
const missingStates: ReadonlySet<string | undefined> = new Set(['3F000', '42883', '42501'])

/** The error for a database in which our functions are not, if that is what went wrong. */
export function schemaMissing(error: unknown): Error | undefined {
  return missingStates.has(sqlStateOf(error))
    ? holdfastError('SCHEMA_MISSING', { cause: error })
    : undefined
}
