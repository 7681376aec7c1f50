import { overlap } from '../../core/footprint.ts'
import type { History, Moment } from './history.ts'

/** Why a lock that was taken did not help. */
export interface LockFault {
  readonly kind: /** Taken after the read that it should have protected. */
    | 'too-late'
    /** Gone before the write, because its transaction was over. */
    | 'released'
    /** Only one side takes it. */
    | 'one-sided'
    /** Both sides lock, but not the same thing. */
    | 'different'
    /** It found no row, so there was nothing to lock. */
    | 'no-row'
    /** The snapshot is older than the lock: REPEATABLE READ, or lock and read in one statement. */
    | 'old-snapshot'
  readonly lock: Moment
  /** The other side's lock, where both have one. */
  readonly otherLock?: Moment
}

/** What is stale: the read, the commit that overtook it, the write that relied on it. */
export interface StaleSteps {
  readonly read: Moment
  readonly commit: Moment
  readonly write: Moment
}

export function diagnoseLocks(history: History, steps: StaleSteps): LockFault | undefined {
  const { read, commit, write } = steps
  const mine = locksOf(history, read.step.flow).filter(({ step }) => step.index < write.step.index)
  const theirs = locksOf(history, commit.step.flow).filter(
    ({ step }) => step.index < commit.step.index,
  )
  const before = mine.findLast(({ step }) => step.index <= read.step.index)
  const between = mine.find(({ step }) => step.index > read.step.index)
  if (before !== undefined) return faultOf(before, theirs, steps)
  // Something else was locked on the way; it only counts if the other side meets it there.
  if (between !== undefined && theirs.some((other) => shares(between, other))) {
    return { kind: 'too-late', lock: between }
  }
  const [other] = theirs
  return other === undefined || between !== undefined
    ? undefined
    : { kind: 'one-sided', lock: other }
}

function faultOf(
  lock: Moment,
  theirs: readonly Moment[],
  { read, write }: StaleSteps,
): LockFault | undefined {
  if (lockedNothing(lock)) return { kind: 'no-row', lock }
  const end = lock.transaction?.last
  if (end !== undefined && end < write.step.index) return { kind: 'released', lock }
  const [other] = theirs
  if (other === undefined) return { kind: 'one-sided', lock }
  if (!theirs.some((one) => shares(lock, one))) return { kind: 'different', lock, otherLock: other }
  const waited = lock.step.waitedFor.length > 0
  return waited && (read === lock || read.seenAt <= lock.step.index)
    ? { kind: 'old-snapshot', lock }
    : undefined
}

/** FOR UPDATE that found nothing; a lock by name answers with a row. */
function lockedNothing({ step: { answer }, statement }: Moment): boolean {
  return statement.verb === 'SELECT' && answer.rowCount === 0 && answer.error === undefined
}

/** Steps that lock and write nothing: what somebody put there to be safe. */
function locksOf({ moments }: History, flow: number): Moment[] {
  return moments.filter(
    ({ kind, step, statement }) =>
      step.flow === flow && kind === 'lock' && !statement.skipsLocked && step.half !== 'commit',
  )
}

function shares(one: Moment, other: Moment): boolean {
  const objects = lockedBy(one)
  return lockedBy(other).some((object) => objects.some((one) => overlap(one, object)))
}

function lockedBy({ step }: Moment): string[] {
  return step.footprint.touches
    .filter(({ mode }) => mode === 'lock' || mode === 'exclusive' || mode === 'attempt')
    .map(({ object }) => object)
}
