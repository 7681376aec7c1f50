import type { Driver, Transaction } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { sqliteDriverOf, sqliteOf, type WriterTerms } from '../driver.ts'
import { unfit } from '../file-fit.ts'
import { isBusy, isMissingTable, isOldSnapshot, isReadOnly } from '../result-code.ts'
import type { Blocker } from '../../../core/events/event-map.ts'

/** What a feature says about a transaction that cannot have the right to write. */
export interface WriterRefusals {
  /** The handle is in no transaction. */
  outside(): Error
  /** The wait is over; these write in this process. */
  ended(cause: unknown, blockers: readonly Blocker[]): Error
}

/**
 * Takes the right to write to the file for the rest of a transaction: from then on nobody else changes anything, and what
 * is read is what was committed last.
 *
 * @throws LOCK_STALE_SNAPSHOT if the transaction has read what was changed since, SCHEMA_MISSING, ENGINE_FILE_UNFIT
 */
export async function takeWriterIn<Tx>(
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  terms: WriterTerms,
  refusals: WriterRefusals,
): Promise<void> {
  if (transaction.state() === 'none') throw refusals.outside()
  try {
    await sqliteOf(transaction).takeWriter(terms)
  } catch (error) {
    if (isOldSnapshot(error)) {
      const details = { client: driver.name }
      throw holdfastError('LOCK_STALE_SNAPSHOT', { cause: error, details })
    }
    if (isMissingTable(error)) throw holdfastError('SCHEMA_MISSING', { cause: error })
    if (isReadOnly(error)) throw unfit('the connection may only read', error)
    if (!isBusy(error)) throw error
    throw refusals.ended(error, sqliteDriverOf(driver).writer().holders())
  }
}

/** The wait of a call that has no code of its own for it. */
export function writerTimeout(
  subject: string,
  cause: unknown,
  blockers: readonly Blocker[],
): Error {
  const details = { subject, names: [], endedBy: 'wait' } as const
  return holdfastError('LOCK_TIMEOUT', { cause, details, blockers })
}
