import type { Transaction } from '../../../core/driver.ts'
import { keptOrUndone } from '../../../core/kept-or-undone.ts'
import { processWide } from '../../../core/process-wide.ts'
import { innodbOf } from '../driver.ts'
import { isMissingSavepoint } from '../errno.ts'
import { hasEnded } from '../server.ts'

/** Each has a name of its own: another one of the same name would take its place, and not stand inside of it. */
const opened = /* @__PURE__ */ processWide('innodb-savepoints/1', () => ({ count: 0 }))

/** Runs the body in a savepoint: kept if it resolves, undone if it rejects. */
export async function withSavepoint<Tx, T>(
  transaction: Transaction<Tx>,
  body: (inner: Transaction<Tx>) => Promise<T>,
): Promise<T> {
  opened.count += 1
  const name = `holdfast_inner_${opened.count}`
  const savepoint = {
    open: `SAVEPOINT ${name}`,
    undo: [`ROLLBACK TO SAVEPOINT ${name}`],
    keep: `RELEASE SAVEPOINT ${name}`,
    isMissing: isMissingSavepoint,
    saysSo: (error: unknown) => hasEnded(innodbOf(transaction).server, error),
  }
  return await keptOrUndone(transaction, savepoint, body)
}
