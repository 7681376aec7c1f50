import type { Transaction } from '../../../core/driver.ts'
import { innodbOf } from '../driver.ts'
import { waitEndedBy } from '../errno.ts'
import { hasEnded } from '../server.ts'

/**
 * Which limit ended a wait, if one did and the transaction goes on. Where the server has ended that as well
 * (`innodb_rollback_on_timeout`), its own error has to reach a caller whose transaction it was: to be told that a lock is
 * taken, or that a call was too late, is to go on, and each statement would be saved by itself. Of ours the leash knows.
 */
export function endedWaitIn<Tx>(
  transaction: Transaction<Tx>,
  error: unknown,
): 'ours' | 'server' | undefined {
  const by = waitEndedBy(error)
  if (by === undefined || transaction.state() === 'open') return by
  return hasEnded(innodbOf(transaction).server, error) ? undefined : by
}
