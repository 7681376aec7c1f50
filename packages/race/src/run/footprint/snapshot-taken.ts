/** Which statement takes the snapshot of its transaction, at REPEATABLE READ and above. */
import type { Touch } from '../../core/model.ts'
import type { StatementShape } from '../statement/statement-shape.ts'
import type { TransactionRecord } from './transaction-record.ts'

/** The server runs everything under a snapshot, down to DEALLOCATE and CLOSE, but for these: see snapshots.test.ts. */
const without: ReadonlySet<string> = new Set([
  '',
  'begin',
  'commit',
  'rollback',
  'savepoint',
  'release',
  'lock',
  'set',
  'reset',
  'show',
  'set constraints',
  'listen',
  'unlisten',
  'notify',
  'checkpoint',
  // A cursor has the snapshot of its DECLARE.
  'fetch',
  'move',
])

/** The first of them decides what all queries of the transaction see. */
export function withSnapshot(
  touches: readonly Touch[],
  shape: StatementShape,
  record: TransactionRecord,
): readonly Touch[] {
  if (without.has(shape.verb)) return touches
  if (record.takesSnapshot()) return [...touches, { object: '*', mode: 'read' }]
  if (shape.kind === 'local' || shape.kind === 'lock') return touches
  // Whatever it reads, it reads the catalogue, which DDL of others changes.
  return touches.length > 0 ? touches : [{ object: 'pg_catalog', mode: 'read' }]
}
