import type { Footprint } from '../core/model.ts'
import type { Settlement } from '../gate/unit.ts'
import type { TransactionRecord } from './transaction-record.ts'

/** What a step turned out to be. */
export interface Derived {
  readonly footprint: Footprint
  /** It is executed and held, and committing it now would be noticed by nobody. */
  readonly idle: boolean
  /** What it looked at that no footprint tells: no order is proven by it. */
  readonly beyond?: string
}

/** What two halves of one step did together. */
export function joinFootprints(one: Footprint, other: Footprint): Footprint {
  const ends = other.ends ?? one.ends
  const parts = one.parts ?? other.parts
  return {
    opaque: one.opaque || other.opaque,
    touches: [...one.touches, ...other.touches],
    ...(ends && { ends }),
    ...(parts && { parts }),
    isolation: one.isolation,
  }
}

export function local(record: TransactionRecord): Derived {
  return { footprint: { opaque: false, touches: [], isolation: record.isolation }, idle: true }
}

export function ended(
  { before }: Settlement,
  record: TransactionRecord,
  how: 'commit' | 'rollback',
): Derived {
  const end = record.ends(how)
  record.clear()
  return before === 'I' ? local(record) : { footprint: end, idle: true }
}

export function unknown({ after }: Settlement, record: TransactionRecord): Derived {
  const footprint: Footprint = { opaque: true, touches: [], isolation: record.isolation }
  if (after === 'I') record.clear()
  else record.spoil()
  return { footprint, idle: false }
}
