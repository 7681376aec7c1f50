import type { Footprint, Touch } from '../../core/model.ts'
import type { Settlement } from '../../gate/unit.ts'
import type { Beyond } from '../statement/beyond.ts'
import type { TransactionRecord } from './transaction-record.ts'

/** What a step turned out to be. */
export interface Derived {
  readonly footprint: Footprint
  /** It is executed and held, and committing it now would be noticed by nobody. */
  readonly idle: boolean
  /** What it looked at that no footprint tells: no order is proven by it. */
  readonly beyond?: Beyond
  /** Code that it ran may have left something in the session. */
  readonly leaves?: boolean
  /** What may have run several statements inside, and counts as one because that was asked for: `take()`. */
  readonly countsAsOne?: string | undefined
  /** Nobody knows the level of its session any more: it depends on everything, and no order is proven by it. */
  readonly levelInDoubt?: boolean
}

/** What two halves of one step did together; if one of them has parts, the other is a part beside them. */
export function joinFootprints(one: Footprint, other: Footprint): Footprint {
  const ends = other.ends ?? one.ends
  const parts = (one.parts || other.parts) && [...(one.parts ?? [one]), ...(other.parts ?? [other])]
  return {
    opaque: one.opaque || other.opaque,
    touches: [...one.touches, ...other.touches],
    ...(ends && { ends }),
    ...(parts && { parts }),
    isolation: one.isolation,
  }
}

export function local(record: TransactionRecord, touches: readonly Touch[] = []): Derived {
  return { footprint: { opaque: false, touches, isolation: record.isolation }, idle: true }
}

/** Of a COMMIT: a transaction that failed is rolled back, and its answer is no error. */
export function howItEnds({ answer, before }: Settlement): 'commit' | 'rollback' {
  return answer.error || before === 'E' ? 'rollback' : 'commit'
}

export function ended(
  { before }: Settlement,
  record: TransactionRecord,
  how: 'commit' | 'rollback',
): Derived {
  const end = record.ends(how)
  record.clear(how)
  return before === 'I' ? local(record) : { footprint: end, idle: true }
}

export function unknown({ after }: Settlement, record: TransactionRecord): Derived {
  const footprint: Footprint = { opaque: true, touches: [], isolation: record.isolation }
  if (after === 'I') record.clear()
  else record.spoil()
  return { footprint, idle: false }
}
