/**
 * Which flow must have come before which, judged by what was read and committed: the graph whose
 * circles are races. Flows and not transactions are its nodes, because a flow is what should have
 * happened at once.
 */
import { overlap } from '../../core/footprint.ts'
import { changedNothing, type History, madeVisible, type Moment } from './history.ts'

/** `from` must have come before `to`. */
export interface Dependency {
  /**
   * `overtaken`: `from` read, and `to` committed a change that the read did not see.
   * `seen`: `to` read what `from` had committed.
   * `overwritten`: `to` wrote what `from` had committed.
   */
  readonly kind: 'overtaken' | 'seen' | 'overwritten'
  readonly from: number
  readonly to: number
  readonly object: string
  /** The read, of an overtaken or seen one. */
  readonly read?: Moment
  /** The write of `to`, of an overwritten one. */
  readonly write?: Moment
  /** The commit that made the change visible. */
  readonly commit: Moment
}

export function dependenciesOf(history: History): Dependency[] {
  return commitsOf(history).flatMap((commit) => dependenciesOn(history, commit))
}

interface Commit {
  readonly moment: Moment
  readonly writes: readonly string[]
}

/** Steps after which others see something new. */
function commitsOf({ moments }: History): Commit[] {
  return moments.flatMap((moment): Commit[] => {
    const writes = madeVisible(moment)
    return writes.length === 0 ? [] : [{ moment, writes }]
  })
}

function dependenciesOn({ moments }: History, { moment: commit, writes }: Commit): Dependency[] {
  const other = commit.step.flow
  return moments
    .filter(({ step }) => step.flow !== other)
    .flatMap((moment) =>
      moment.step.footprint.touches.flatMap(({ object, mode }): Dependency[] => {
        // `*` stands for the snapshot of a whole transaction; its reads are there one by one.
        if (object === '*' || !writes.some((one) => overlap(one, object))) return []
        const me = moment.step.flow
        if (!moment.statement.looks) {
          // ON CONFLICT DO NOTHING: it met a row, so it has seen it.
          const met = mode !== 'read' && changedNothing(moment)
          return met && visible(moment, 'lock', commit.step.index)
            ? [{ kind: 'seen', from: other, to: me, object, read: moment, commit }]
            : []
        }
        if (mode === 'read' || mode === 'lock' || mode === 'attempt') {
          return visible(moment, mode, commit.step.index)
            ? [{ kind: 'seen', from: other, to: me, object, read: moment, commit }]
            : [{ kind: 'overtaken', from: me, to: other, object, read: moment, commit }]
        }
        return []
      }),
    )
    .concat(overwritten(moments, commit, writes))
}

/** Rows that a statement waited to lock are read again when it has them. */
function visible(moment: Moment, mode: string, commit: number): boolean {
  const { resumedAfter } = moment.step
  const again = mode === 'lock' && resumedAfter !== undefined ? resumedAfter : moment.seenAt
  return commit <= Math.max(again, moment.seenAt)
}

function overwritten(
  moments: readonly Moment[],
  commit: Moment,
  writes: readonly string[],
): Dependency[] {
  return moments
    .filter(
      ({ kind, step, transaction }) =>
        kind === 'write' &&
        step.flow !== commit.step.flow &&
        transaction?.end === 'commit' &&
        (step.resumedAfter ?? step.index) >= commit.step.index,
    )
    .filter((write) => !changedNothing(write) && !write.undone)
    .flatMap((write) =>
      write.step.footprint.touches
        .filter(({ mode }) => mode === 'lock')
        .flatMap(({ object }): Dependency[] => {
          if (!writes.some((one) => overlap(one, object))) return []
          const [from, to] = [commit.step.flow, write.step.flow]
          return [{ kind: 'overwritten', from, to, object, write, commit }]
        }),
    )
}
