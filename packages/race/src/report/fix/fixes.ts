import type { Failure } from '../../core/model.ts'
import type { Anomaly } from '../anomaly/anomaly.ts'
import { assignedBy } from './assignments.ts'
import { type Fix, hasHoldfast, way } from './fix.ts'
import { claimFixes, updateFixes } from './fixes-of-rows.ts'
import { checkFixes } from './fixes-of-sets.ts'
import type { History, Moment } from '../anomaly/history.ts'
import { sqlName } from '../sql/sql-name.ts'
import { isAboutObjects, keyOf, ref, sqlTable, tableOf } from '../words.ts'

/** The ways out, the one to try first at the front. */
export function fixesOf(anomaly: Anomaly, history: History, serial: Failure['serial']): Fix[] {
  return [...lockFixes(anomaly), ...fixesByName(anomaly, history, serial)]
}

/** If there is a lock already, putting it right comes first. */
function lockFixes({ lockFault, read, write, commit }: Anomaly): Fix[] {
  if (lockFault === undefined || read === undefined || commit === undefined) return []
  const { kind, lock } = lockFault
  if (kind === 'too-late') {
    return [
      way(
        `Move the lock (${lock.number}) before the read (${read.number}), or decide on what is read under it: everything read before a lock may be stale.`,
      ),
    ]
  }
  if (kind === 'no-row') {
    return [
      way(
        `Lock something that is always there before (${read.number}): the row that these belong to, or a name.`,
        `SELECT pg_advisory_xact_lock(hashtext('…'))`,
      ),
    ]
  }
  if (kind === 'released') {
    const until = write === undefined ? '' : ` to (${write.number})`
    return [
      way(
        `Put BEGIN before the lock and COMMIT after the write: one transaction from (${lock.number})${until}, on one connection.`,
      ),
    ]
  }
  if (kind === 'one-sided') {
    const without = lock.step.flow === read.step.flow ? commit.who : read.who
    return [way(`Let ${without} take the lock that ${ref(lock)} takes, before it reads.`)]
  }
  if (kind === 'different') return [way('Make both sides lock the same key, or the same row.')]
  return [
    way(
      'Take the lock in a statement of its own, at READ COMMITTED, so that the read that follows it has a newer snapshot.',
    ),
  ]
}

function fixesByName(anomaly: Anomaly, history: History, serial: Failure['serial']): Fix[] {
  const { name, read, commit, write, hit, seen } = anomaly
  if (name === 'deadlock') return deadlockFixes(anomaly, history)
  if (name === 'unhandled serialization failure') {
    return [
      way(
        'Run the whole transaction again after 40001, from its BEGIN.',
        hasHoldfast(history)
          ? 'await hf.transaction(async (tx) => { … }) // retries 40001 and 40P01'
          : undefined,
      ),
      way('Take a lock before the first read, so that there is nothing to refuse.'),
    ]
  }
  if (name === 'unhandled duplicate') return duplicateFixes(hit)
  if (name === 'unhandled error') {
    return [
      way('Expect the error and try again from the start, or take a lock before the first read.'),
    ]
  }
  if (name === 'lost after crash' || name === 'lost answer') return crashFixes(name, history)
  if (read === undefined) return []
  if (name === 'read skew' || name === 'non-repeatable read') return snapshotFixes(anomaly, read)
  if (name === 'intermediate read' && commit !== undefined && seen !== undefined) {
    return [
      way(
        `Make the change of ${commit.who} in one transaction: what is committed at (${seen.number}) and at (${commit.number}) belongs together.`,
      ),
    ]
  }
  if (name === 'double claim') return claimFixes(history, read, write)
  const ownRow =
    write !== undefined &&
    (['UPDATE', 'DELETE'].includes(write.statement.verb) || assignedBy(write).length > 0) &&
    tableOf(write) === tableOf(read)
  if (name === 'lost update' || (name === 'stale check' && ownRow)) {
    return updateFixes(anomaly, history, read, write, serial)
  }
  return checkFixes(anomaly, history, read, serial)
}

function snapshotFixes({ name, otherRead }: Anomaly, read: Moment): Fix[] {
  const snapshot = way(
    `${name === 'read skew' ? 'Read both in one statement, or give' : 'Give'} the reading transaction of ${read.who} one snapshot.`,
    'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY',
  )
  if (name === 'read skew') return [snapshot]
  const again = otherRead === undefined ? 'again' : `again (${otherRead.number})`
  return [
    way(`Read once and keep what was read (${read.number}), instead of reading it ${again}.`),
    snapshot,
  ]
}

function deadlockFixes({ circle = [] }: Anomaly, history: History): Fix[] {
  const [first] = circle
  const table = first === undefined ? '…' : tableOf(first)
  const column = first && keyOf(first)?.column
  return [
    way(
      'Take the locks in one order everywhere: all at once, sorted, before the first write.',
      first && column !== undefined
        ? `SELECT … FROM ${sqlTable(first)} WHERE ${sqlName(column)} = ANY($1) ORDER BY ${sqlName(column)} FOR UPDATE`
        : undefined,
    ),
    ...(hasHoldfast(history)
      ? [
          way(
            'Lock names; Holdfast sorts them.',
            `await hf.guard([lockKey('${table}', a), lockKey('${table}', b)], async (tx) => { … })`,
          ),
        ]
      : []),
    way('Run the whole transaction again after 40P01.', undefined, 'and'),
  ]
}

function duplicateFixes(hit: Moment | undefined): Fix[] {
  const table = hit === undefined ? '…' : sqlTable(hit)
  if (hit !== undefined && isAboutObjects(hit)) {
    return [
      way(
        'Let only one do it at a time: a lock before the look, held to the commit. IF NOT EXISTS looks first, too.',
        `SELECT pg_advisory_xact_lock(hashtext('migrate'))`,
      ),
    ]
  }
  return [
    way(
      'Insert without looking first, and read the row that is there if nothing was inserted.',
      `INSERT INTO ${table} … ON CONFLICT DO NOTHING RETURNING *`,
    ),
    way('Catch 23505 and read again, outside the transaction that failed.'),
  ]
}

function crashFixes(name: 'lost after crash' | 'lost answer', history: History): Fix[] {
  if (name === 'lost answer') {
    return [
      way(
        'Give the operation an id, and let the database remember it in the same transaction, in a table where it is unique: a second try then finds the first.',
      ),
      ...(hasHoldfast(history)
        ? [way('Use the Holdfast ledger, where the same operationId is applied once.')]
        : []),
    ]
  }
  return [
    way(
      'Do what belongs together in one transaction. Where something outside the database is part of it, put the amount aside in a way that ends by itself.',
      hasHoldfast(history)
        ? `await book.withHold(key, { estimate, ttl: '2 min', operationId }, async (hold) => { … })`
        : undefined,
    ),
  ]
}
