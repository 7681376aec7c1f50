/** Advisory locks that outlive a transaction. */
import type { Held } from './held.ts'
import type { StatementShape } from '../statement/statement-shape.ts'
import { advisoryObject, type Touched } from './touches.ts'
import type { TransactionRecord } from './transaction-record.ts'

/** Those that a statement gave back; those that it took are noted, if they may outlive the transaction. */
export function releasedKeys(
  shape: StatementShape,
  { plain }: Touched,
  record: TransactionRecord,
  before: Held,
  after: Held,
): string[] {
  const calls = [...shape.calls]
  // Which kind of lock a function has taken nobody tells: it is counted as released at the commit and later.
  if (!plain || calls.some((call) => /^pg(_try)?_advisory_lock/.test(call))) {
    for (const key of after.advisory.keys()) {
      if (!before.advisory.has(key)) record.sessionKeys.add(key)
    }
  }
  if (plain && !calls.some((call) => call.startsWith('pg_advisory_unlock'))) return []
  const released = [...record.sessionKeys].filter((key) => !after.advisory.has(key))
  for (const key of released) record.sessionKeys.delete(key)
  return released.map(advisoryObject)
}
