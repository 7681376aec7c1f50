import type { Transaction } from '../core/driver.ts'
import { isTrue } from '../core/is-true.ts'
import type { LockKey } from '../core/lock-key.ts'
import { heldStatement } from '../engines/postgres/locks/lock-holders.ts'
import type { LockMode } from '../engines/postgres/locks/locks.ts'

/** Whether the transaction holds the key in the mode or a stronger one. */
export async function isHeld<Tx>(
  transaction: Transaction<Tx>,
  key: LockKey,
  mode: LockMode,
): Promise<boolean> {
  const [row] = await transaction.query(heldStatement(key, mode))
  return isTrue(row?.['held'])
}
