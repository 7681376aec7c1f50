import type { Failure, Report } from '../core/model.ts'
import type { Anomaly, AnomalyName } from './anomaly/anomaly.ts'
import { cycleOf } from './anomaly/cycle.ts'
import type { Fix } from './fix/fix.ts'
import { fixesOf } from './fix/fixes.ts'
import { type History, type Moment, readHistory } from './anomaly/history.ts'
import { whyOf } from './anomaly/why.ts'
import { recogniseAnomaly } from './anomaly/recognise-anomaly.ts'

/** What part a step has in the failure. */
export interface Mark {
  readonly role: 'stale-read' | 'overtaking' | 'stale-write' | 'circle' | 'hit'
  /** A few words beside the step. */
  readonly note: string
}

/** What a failing run means. */
export interface Explanation {
  readonly anomaly: AnomalyName
  /** The name as a phrase. */
  readonly title: string
  readonly why: string
  /** Who must have come before whom, and why: round in a circle, which is what makes it a race. Empty if none is known. */
  readonly cycle: readonly string[]
  readonly fixes: readonly Fix[]
  /** By index of the step. */
  readonly marks: ReadonlyMap<number, Mark>
  readonly history: History
  /** The steps behind it, for pictures. */
  readonly found: Anomaly
}

const titles: Readonly<Record<AnomalyName, string>> = {
  'check-then-insert': 'check-then-insert: each checked before the other had inserted',
  'lost update': 'lost update: a write replaced one it had not seen',
  'double claim': 'double claim: two took the same row',
  'write skew': 'write skew: each changed what the other had relied on',
  'stale check': 'stale check: what was checked had changed by the time of the write',
  'read skew': 'read skew: two reads saw two different moments',
  'non-repeatable read': 'non-repeatable read: what was read twice had changed in between',
  'intermediate read': 'intermediate read: half of a change was seen',
  deadlock: 'deadlock: locks taken in different orders',
  'unhandled serialization failure': 'unhandled serialization failure: nobody retries it',
  'unhandled duplicate': 'unhandled duplicate: PostgreSQL caught it, the code did not',
  'unhandled error': 'unhandled error: it happens in no serial order',
  'lost after crash': 'lost after crash: half of the work stays',
  'lost answer': 'lost answer: committed, and the caller does not know',
  unknown: 'a result that no serial order gives',
}

/** Every name that a report can give. */
export const anomalyNames: readonly string[] = Object.keys(titles)

/** Names the anomaly of a failure and says why it happened and what helps. */
export function explainFailure(
  { flows, known }: Pick<Report, 'flows' | 'known'>,
  failure: Failure,
): Explanation {
  const history = readHistory(failure.run, flows, known)
  const found = recogniseAnomaly(history, failure)
  return {
    anomaly: found.name,
    title: titles[found.name],
    why: whyOf(found, history),
    cycle: cycleOf(found, history),
    fixes: fixesOf(found, history, failure.serial),
    marks: marksOf(found),
    history,
    found,
  }
}

function marksOf(found: Anomaly): Map<number, Mark> {
  const { read, commit, write, hit, circle = [], oneStatement } = found
  const marks = new Map<number, Mark>()
  const set = (moment: Moment | undefined, role: Mark['role'], note: string): void => {
    if (moment !== undefined && !marks.has(moment.step.index))
      marks.set(moment.step.index, { role, note })
  }
  for (const moment of circle) set(moment, 'circle', '')
  set(hit, 'hit', '')
  if (read !== undefined && commit !== undefined) {
    if (write !== undefined && oneStatement !== true) {
      const late = write.step.index > commit.step.index
      set(
        write,
        'stale-write',
        late
          ? `relies on (${read.number}), overtaken by (${commit.number})`
          : `relies on (${read.number})`,
      )
    }
    set(read, 'stale-read', oneStatement === true ? `does not see (${commit.number})` : '')
    set(commit, 'overtaking', `(${read.number}) is no longer true`)
  }
  return marks
}
