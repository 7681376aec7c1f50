import type { Driver, Statement, Transaction } from '../core/driver.ts'
import { type Blocker, holdfastError } from '../core/errors.ts'
import { channels, publish } from '../core/events.ts'
import { within } from '../core/within.ts'
import { blockersFrom } from '../engines/postgres/activity.ts'
import { boundLookup } from '../engines/postgres/row-blockers.ts'

/** How long the error may be held back to name the blocker. */
const lookupLimitMs = 100
const bound: Statement = boundLookup(lookupLimitMs)

/** What a lock that was not granted is known by. */
export interface Refused<Tx> {
  readonly code: 'ROWS_TIMEOUT' | 'ROWS_BUSY'
  readonly cause: unknown
  readonly subject: string
  readonly waitMs: number
  /** Set if the transaction outlived the failure and can be asked itself. */
  readonly usable: Transaction<Tx> | undefined
  /** Questions after the blockers, asked in turn until one is answered. */
  readonly questions: readonly Statement[]
}

/** The error for a lock that was not granted, with whoever held it at this moment. */
export async function contention<Tx>(driver: Driver<Tx>, refused: Refused<Tx>): Promise<Error> {
  const { code, cause, subject, waitMs, usable, questions } = refused
  const blockers =
    usable === undefined ? await lookBeside(driver, questions) : await lookInside(usable, questions)
  publish(code === 'ROWS_BUSY' ? channels.rowsBusy : channels.rowsTimeout, {
    table: subject,
    waitMs,
    blockers,
  })
  return holdfastError(code, { cause, details: { subject }, blockers })
}

/** In a transaction of its own, on another connection: the caller's is aborted. */
async function lookBeside<Tx>(
  driver: Driver<Tx>,
  questions: readonly Statement[],
): Promise<readonly Blocker[]> {
  let late = false
  const looking = driver.transaction(
    async (transaction, opened) => {
      // A connection came free only after the error had gone out without blockers.
      if (late) return []
      await (opened ?? transaction.query(bound))
      return look(transaction, questions)
    },
    { scopes: [], opening: bound },
  )
  const blockers = await within(looking, lookupLimitMs)
  late = true
  return blockers ?? []
}

/** In a savepoint of the caller's transaction, undone in any case: its bounds must not stay. */
async function lookInside<Tx>(
  transaction: Transaction<Tx>,
  questions: readonly Statement[],
): Promise<readonly Blocker[]> {
  let blockers: readonly Blocker[] = []
  const undo = new Error('undo')
  try {
    await transaction.nested(async (inner) => {
      await inner.query(bound)
      blockers = await look(inner, questions)
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
  questions: readonly Statement[],
): Promise<readonly Blocker[]> {
  for (const question of questions) {
    const found = blockersFrom(await transaction.query(question))
    if (found.length > 0) return found
  }
  return []
}
