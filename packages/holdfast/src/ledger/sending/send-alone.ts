import type { Executor, Statement } from '../../core/driver.ts'
import { holdfastError, isHoldfastError } from '../../core/errors.ts'
import { sqlStateOf, wasCanceled } from '../../core/sql-state.ts'
import type { LedgerCalls } from '../../engines/postgres/ledger/ledger.ts'
import { askAgain } from '../../tx/ask-again.ts'
import { answersOf, type LineAnswer } from './answer.ts'
import { type PlainRequest, plainStatementFor, type Request, statementFor } from './request.ts'
import type { Blocker } from '../../core/events/event-map.ts'

/** The account was not granted in time, or the server has ended the statement for taking too long. */
export function isLocked(error: unknown): boolean {
  // An answer was lost before: perhaps it was applied then.
  if (isHoldfastError(error)) return false
  const state = sqlStateOf(error)
  return state === '55P03' || (state === '57014' && !wasCanceled(error))
}

/** The error of an operation that was not applied in time. */
export function timeoutOf({ operation }: Request, blockers: readonly Blocker[]): Error {
  const [line] = operation.lines
  const details = { subject: line?.book ?? operation.book }
  return holdfastError('LEDGER_TIMEOUT', { details, blockers })
}

interface Sending {
  /** By `apply_plain`. */
  readonly plain: boolean
  /** `apply_debit` is known to be there. */
  readonly hasDebit: boolean
  readonly forMs: number
  readonly onDoubt: () => void
}

/** One call in a transaction of its own. */
export async function applyTogether(
  executor: Executor,
  calls: LedgerCalls,
  requests: readonly Request[],
  { plain, hasDebit, forMs, onDoubt }: Sending,
): Promise<LineAnswer[][]> {
  const sizes = requests.map(({ operation }) => operation.lines.length)
  if (!plain) {
    const statement = statementFor(calls, requests, hasDebit)
    return await sendAlone(executor, statement, sizes, forMs)
  }
  const statement = plainStatementFor(calls, requests as readonly PlainRequest[])
  return await sendAlone(executor, statement, sizes, forMs, onDoubt)
}

export const unknown = 'LEDGER_OUTCOME_UNKNOWN'

/** Also run again where the same id was used for two accounts at the same moment: then it is known. */
const uniqueViolation = '23505'

/**
 * One statement in a transaction of its own. Run again after a conflict, and after a lost connection
 * too: the operation ids make the second run an answer to the first.
 */
export async function sendAlone(
  executor: Executor,
  statement: Statement,
  sizes: readonly number[],
  forMs: number,
  onDoubt?: () => void,
): Promise<LineAnswer[][]> {
  return await askAgain(
    async () => {
      const [row] = await executor.query(statement)
      return answersOf(row?.['answer'], sizes)
    },
    { forMs, unknown, on: [uniqueViolation], ...(onDoubt && { onDoubt }) },
  )
}
