/** A coverage in words, for every form of report. */
import type { Coverage, Note, Report } from '../core/model.ts'
import { times } from './words.ts'

/** A search in which the flows were never under way together says nothing about races. */
export function isVacuous({ verdict }: Report): boolean {
  return verdict === 'vacuous'
}

/** Why a search that found nothing does not cover everything. */
export function boundedBy({ notes }: Report): { readonly what: string; readonly next: string } {
  if (notes.some(({ kind }) => kind === 'unjudged'))
    return { what: 'as far as it could be judged', next: 'explore fewer flows at once' }
  if (notes.some(({ kind }) => kind === 'unseen'))
    return { what: 'as far as it could be compared', next: 'see the notes: what they name was not' }
  const uncontrolled = notes.some(({ kind }) => uncertain.has(kind))
  return uncontrolled
    ? {
        what: 'as far as it was controlled',
        next: 'see the notes: what they name was left to chance',
      }
    : {
        what: 'within the budget',
        next: 'raise budget.schedules or budget.ms, or make the flows smaller',
      }
}

/** Notes of what no schedule decides. */
export const uncertain: ReadonlySet<Note['kind']> = new Set([
  'uncontrolled-wait',
  'nondeterminism',
  'several-statements',
  'undecided',
])

/** How much was run. */
export function coveredText({ coverage }: Report): string {
  const { exhaustive, classes, interleavings, schedules, milliseconds } = coverage
  if (classes === 0) {
    return `nothing: only orders of whole flows were run (${times(schedules, 'run')}, ${seconds(milliseconds)})`
  }
  // Flows that branch have more than their serial runs tell.
  const isTold = interleavings >= BigInt(classes)
  const number = `${big(interleavings)} ${interleavings === 1n ? 'interleaving' : 'interleavings'}`
  const orders = isTold ? number : 'interleavings'
  const runs = `${times(schedules, 'run')}, ${seconds(milliseconds)}`
  if (exhaustive) {
    return `exhaustive: ${times(classes, 'class', 'classes')} ${classes === 1 ? 'stands' : 'stand'} for all ${orders} (${runs})`
  }
  return [
    `not exhaustive: ${times(classes, 'class', 'classes')} run${isTold ? `, of ${orders}` : ''} (${runs})`,
    ...bounds(coverage),
  ].join('; ')
}

function bounds({ preemptionBound, missBound }: Coverage): string[] {
  return [
    ...(preemptionBound === undefined
      ? []
      : [`complete for at most ${times(preemptionBound, 'preemption')}`]),
    ...(missBound === undefined
      ? []
      : [
          `a race that needs ${missBound.depth} steps in a certain order is missed with a probability of at most ${percent(missBound.atMost)}`,
        ]),
  ]
}

/** What happened in those runs. */
export function metText({ coverage }: Report): string {
  const { overlapped, blockedEpisodes, deadlocks, crashPoints } = coverage
  return [
    overlapped ? 'the flows overlapped' : 'the flows NEVER overlapped',
    `${times(blockedEpisodes, 'wait')} for a lock`,
    times(deadlocks, 'deadlock'),
    ...(crashPoints > 0 ? [times(crashPoints, 'crash point')] : []),
  ].join(', ')
}

/** What a green result does not say. */
export function notCoveredText({ flows, coverage }: Report): string {
  return [
    `other flows, more than ${flows.length} at a time, other data than the seed's`,
    'what happens inside functions, triggers and foreign key checks',
    ...(coverage.crashPoints === 0 ? ['crashes'] : []),
  ].join('; ')
}

/** What to say of a report that is vacuous: flows that only read have nothing to race for. */
export function vacuousWhy({ notes, trouble }: Report): string {
  return trouble?.message ?? notes.find(({ kind }) => kind === 'only-reads')?.message ?? vacuousText
}

const vacuousText =
  'No transaction of one flow was open while another flow made a step, in any run. This does not rule out races. Do the flows use cx.pool or cx.url? A client made elsewhere is not seen. Does one end before it reaches the database, or wait for another outside it? Do they share one client? On one connection nothing overlaps: give each a client of its own.'

export function seconds(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`
  const value = milliseconds / 1000
  return value < 100 ? `${value.toFixed(1)} s` : `${Math.round(value).toLocaleString('en-US')} s`
}

function big(number: bigint): string {
  return number.toLocaleString('en-US')
}

function percent(share: number): string {
  const value = share * 100
  return `${value >= 10 ? Math.round(value) : Number(value.toPrecision(2))} %`
}
