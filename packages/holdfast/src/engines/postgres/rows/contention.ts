import type { Driver, Statement, Transaction } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { channels, publish } from '../../../core/events.ts'
import { within } from '../../../core/within.ts'
import { blockersFrom } from '../tx/activity.ts'
import { boundLookup, type Waiter } from './row-blockers.ts'
import { lookupLimitMs } from '../../../core/options/wait.ts'
import type { Blocker } from '../../../core/events/event-map.ts'
import type { EndedBy } from '../../../core/errors/error-details.ts'

const bound: Statement = boundLookup(lookupLimitMs)

/** What a lock that was not granted is known by. */
export interface Refused<Tx> {
  readonly code: 'ROWS_TIMEOUT' | 'ROWS_BUSY'
  readonly endedBy: EndedBy | undefined
  readonly cause: unknown
  readonly subject: string
  /** When the call was made, by `performance.now()`. */
  readonly called: number
  readonly waiter: Omit<Waiter, 'waitedMs'>
  /** Set if the transaction outlived the failure and can be asked itself. */
  readonly usable: Transaction<Tx> | undefined
  readonly questions: Questions
}

/** Questions after the blockers of who has waited, asked in turn until one is answered. */
export type Questions = readonly ((waiter: Waiter) => Statement)[]

/** The error for a lock that was not granted, with whoever held it at this moment. */
export async function contention<Tx>(driver: Driver<Tx>, refused: Refused<Tx>): Promise<Error> {
  const { code, endedBy, cause, subject, called, usable } = refused
  const waitMs = performance.now() - called
  const blockers =
    usable === undefined
      ? ((await askBeside(driver, (transaction) => look(transaction, refused))) ?? [])
      : await lookInside(usable, refused)
  publish(code === 'ROWS_BUSY' ? channels.rowsBusy : channels.rowsTimeout, {
    table: subject,
    waitMs,
    blockers,
  })
  const details = endedBy === undefined ? { subject } : { subject, endedBy }
  return holdfastError(code, { cause, details, blockers })
}

/**
 * In a transaction of its own, on another connection: the caller's is aborted. Nothing if it fails, or there is no answer
 * in time.
 */
export async function askBeside<Tx, T>(
  driver: Driver<Tx>,
  ask: (transaction: Transaction<Tx>) => Promise<T>,
): Promise<T | undefined> {
  let late = false
  const asking = driver.transaction(
    async (transaction, opened) => {
      // A connection came free only after the error had gone out.
      if (late) return undefined
      await (opened ?? transaction.query(bound))
      return await ask(transaction)
    },
    { scopes: [], opening: () => bound, connectWithinMs: lookupLimitMs },
  )
  const answer = await within(asking, lookupLimitMs)
  late = true
  return answer
}

/** In a savepoint of the caller's transaction, undone in any case: its bounds must not stay. */
async function lookInside<Tx>(
  transaction: Transaction<Tx>,
  refused: Refused<Tx>,
): Promise<readonly Blocker[]> {
  let blockers: readonly Blocker[] = []
  const undo = new Error('undo')
  try {
    await transaction.nested(async (inner) => {
      await inner.query(bound)
      blockers = await look(inner, refused)
      throw undo
    })
  } catch {
    // Failing to look means only that nobody is named.
  }
  return blockers
}

/**
 * The bounds are the server's, since a table that is locked as a whole cannot be read: bounding
 * only our patience would leave a connection stuck behind the very lock we report.
 */
async function look<Tx>(
  transaction: Transaction<Tx>,
  { questions, called, waiter }: Refused<Tx>,
): Promise<readonly Blocker[]> {
  for (const question of questions) {
    const waitedMs = performance.now() - called
    const found = blockersFrom(await transaction.query(question({ ...waiter, waitedMs })))
    if (found.length > 0) return found
  }
  return []
}
