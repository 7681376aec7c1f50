import type { Mark } from './explain.ts'
import { type History, madeVisible, type Moment, nameOf } from './anomaly/history.ts'
import { shorten } from './sql/shorten.ts'
import { list } from './words.ts'

/** One line of a timeline: a step, or the moment at which a waiting step went on. */
export interface TimelineRow {
  readonly kind: 'step' | 'resume'
  readonly moment: Moment
  readonly mark?: Mark
  /** Small print: who it waits for, what became visible. */
  readonly note?: string
  /** Of a row that resumes: the step after which it did. */
  readonly after?: Moment
}

/** Steps in their order, and below the step that let it go on, each step that had waited. */
export function timelineOf(history: History, marks: ReadonlyMap<number, Mark>): TimelineRow[] {
  const { moments } = history
  return moments.flatMap((moment): TimelineRow[] => {
    const mark = marks.get(moment.step.index)
    const note = noteOf(moment, history)
    const resumed = moments.filter(
      ({ step }) =>
        step.resumedAfter === moment.step.index &&
        // The victim's own wait ends in the step that ends it.
        !(moment.kind === 'victim' && step.flow === moment.step.flow),
    )
    return [
      {
        kind: 'step',
        moment,
        ...(mark === undefined ? {} : { mark }),
        ...(note === undefined ? {} : { note }),
      },
      ...resumed.map((other): TimelineRow => ({ kind: 'resume', moment: other, after: moment })),
    ]
  })
}

/** The statements of a step on one line, the halves of one told apart. */
export function stepText({ step, transaction, kind }: Moment, width: number): string {
  if (kind === 'victim') return 'PostgreSQL ends it: deadlock'
  if (step.half === 'commit') {
    return transaction === undefined ? 'COMMIT' : `COMMIT of (${transaction.first + 1})`
  }
  const share = Math.floor(width / Math.max(1, step.statements.length))
  return step.statements
    .map((sql) => labelOf(sql) ?? shorten(sql, step.parameters, share))
    .join('; ')
}

/** A place of the flow that is no statement, named by the flow itself. */
function labelOf(sql: string): string | undefined {
  return /^-- ([^\n]+)$/.exec(sql)?.[1]
}

/** Which of its flow's connections a step used, counted from 1, if the flow used several. */
export function laneOf({ step }: Moment, { moments }: History): number | undefined {
  const lanes = moments
    .filter((other) => other.step.flow === step.flow && !isLabel(other))
    .map((other) => other.step.lane)
  const used = [...new Set(lanes)].toSorted((one, other) => one - other)
  return used.length < 2 ? undefined : used.indexOf(step.lane) + 1 || undefined
}

function isLabel({ step }: Moment): boolean {
  return step.statements.every((sql) => labelOf(sql) !== undefined) && step.statements.length > 0
}

/** Whether the answer of a step is told where it went on and not where it was sent. */
export function isWaiting({ step }: Moment): boolean {
  return step.waitedFor.length > 0
}

function noteOf(moment: Moment, history: History): string | undefined {
  const { flows, moments } = history
  const { step, kind } = moment
  if (kind === 'crash') return 'dies here: the statement never reaches the server'
  if (kind === 'lost-answer') return 'the server did it; the answer is lost'
  if (isWaiting(moment)) {
    const others = list(step.waitedFor.map((flow) => flows[flow] ?? '?'))
    return step.resumedAfter === undefined && !hasAnswer(moment)
      ? `waits for ${others}, to the end`
      : `waits for ${others}`
  }
  const visible = [...new Set(madeVisible(moment).map((object) => nameOf(object, history)))]
  // After the last step nobody is left to see it.
  return visible.length === 0 || step.index === moments.length - 1
    ? undefined
    : `now visible: ${visible.join(', ')}`
}

function hasAnswer({ step: { answer } }: Moment): boolean {
  return answer.error !== undefined || answer.tag !== undefined
}

/** `goes on after bob's COMMIT (6)` */
export function resumeText({ moment, after }: TimelineRow): string {
  if (moment.step.answer.error?.sqlstate === '40P01') return 'ended by PostgreSQL: deadlock'
  if (after === undefined) return 'goes on'
  if (after.kind === 'victim') return `goes on: ${after.who} is out of the way (${after.number})`
  const verb = after.kind === 'commit' ? 'COMMIT' : after.statement.verb || 'end'
  const own = after.step.flow === moment.step.flow
  return own ? 'goes on' : `goes on after ${after.who}'s ${verb} (${after.number})`
}
