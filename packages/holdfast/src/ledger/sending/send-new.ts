import type { Executor } from '../../core/driver.ts'
import { sqlStateOf } from '../../core/sql-state.ts'
import type { LedgerCalls } from '../../engines/postgres/ledger/ledger.ts'
import { askAgain } from '../../tx/ask-again.ts'
import type { Accepted } from '../verdict.ts'
import { type NewCall, newVerdicts } from './new-call.ts'
import { unknown } from './send-alone.ts'
import type { Waiting, Way } from './waiting.ts'

/** How long ids are looked for first, after one was known. */
const lookForMs = 1_000
/** How long a schema that has no `apply_new` is not asked for it again. */
const missingForMs = 60_000
/** The same operation id a second time; and no such function, or no right to use it. */
const [uniqueViolation, undefinedFunction, insufficientPrivilege] = ['23505', '42883', '42501']

/** What became of a call of `apply_new`. */
interface Sent {
  /** Nothing for those that were left out. */
  readonly verdicts: readonly (Accepted<number> | undefined)[]
  /** An answer was lost before this one. */
  readonly doubt: boolean
  /** Nothing was done, and for so long all go the longer way: an id is known, or the function is not there. */
  readonly longerForMs: number | undefined
}

/** Sends operations that are thought to be new, in a transaction of their own. */
export async function sendNew(
  executor: Executor,
  calls: LedgerCalls,
  batch: readonly NewCall[],
  forMs: number,
): Promise<Sent> {
  let doubt = false
  const ask = async (): Promise<Omit<Sent, 'doubt'>> => {
    try {
      const [row] = await executor.query(calls.fresh(batch))
      return { verdicts: newVerdicts(row?.['answer'], batch), longerForMs: undefined }
    } catch (error) {
      const longerForMs = longerWayFor(error)
      if (longerForMs === undefined) throw error
      // Also after an answer that was lost: what is asked then tells what became of it.
      return { verdicts: [], longerForMs }
    }
  }
  const onDoubt = (): void => {
    doubt = true
  }
  const sent = await askAgain(ask, { forMs, unknown, onDoubt })
  return { ...sent, doubt }
}

/** They have to be sent again, by another way. */
export function setBack(left: readonly Waiting[], doubt: boolean, way: Way): void {
  for (const waiting of left) {
    waiting.way = way
    waiting.doubted ||= doubt
    waiting.setBack()
  }
}

function longerWayFor(error: unknown): number | undefined {
  const state = sqlStateOf(error)
  if (state === uniqueViolation) return lookForMs
  return state === undefinedFunction || state === insufficientPrivilege ? missingForMs : undefined
}
