/** What one call does in the database when it is run alone, from the rows that were there before it. */
import type { Footprint, Said, Step } from '../../core/model.ts'
import { list } from '../../report/words.ts'
import type { RecordedStep, Recording } from '../engine.ts'
import type { Call } from '../model.ts'

/** A call that was run once more, alone. */
export interface Profile {
  readonly call: Call
  readonly steps: readonly RecordedStep[]
  /** What its statements touch; the footprint of a hunt without a parser is another one. */
  readonly footprints: readonly Footprint[]
  /** Values that it binds to columns. */
  readonly bound: readonly BoundValue[]
}

/** A value that a statement compares a column with, or puts into it. */
export interface BoundValue {
  /** Of the table, without its schema. */
  readonly table: string
  readonly column: string
  readonly value: string
  readonly inserted: boolean
}

/** Why a call is in no pair. */
export interface Unusable {
  readonly call: Call
  readonly steps: readonly RecordedStep[]
  readonly because: string
}

export function profileOf(
  call: Call,
  recording: Recording,
  read: {
    footprint(step: Step): Footprint
    bound(steps: readonly Step[]): readonly BoundValue[]
    /** What it wanted of other machines and did not get. */
    readonly refused: readonly string[]
  },
): Profile | Unusable {
  const { steps, outcome, notes } = recording
  const because = reasonAgainst(call, steps, saidOf(outcome), notes, read.refused)
  if (because !== undefined) return { call, steps, because }
  return { call, steps, footprints: steps.map(read.footprint), bound: read.bound(steps) }
}

function saidOf(outcome: Recording['outcome']): Said | undefined {
  return outcome.kind === 'returned' || outcome.kind === 'threw' ? outcome.said : undefined
}

function reasonAgainst(
  call: Call,
  steps: readonly Step[],
  said: Said | undefined,
  notes: Recording['notes'],
  refused: readonly string[],
): string | undefined {
  if (call.others)
    return `it was recorded with database ${list(call.others)}, and the hunt has the rows of another one. Let the suite use one database: run it in one worker, or give the address with --url`
  const stray = notes.find(({ kind }) => kind === 'uncontrolled-wait')
  if (steps.length === 0 && stray) return stray.message
  if (said !== call.said && refused.length > 0)
    return `it wants ${list(refused)}, which it does not get while calls are replayed; elsewhere: 'send' allows it`
  if (said !== call.said)
    return `run alone from the same rows it was ${said ?? 'not finished'}, and in the recording ${call.said}: something that is not in the database decides over it${environmentText(call)}`
  if (steps.length === 0) return 'it sends no statement'
  if (said === 'failed') return 'it fails by itself'
  return undefined
}

function environmentText({ differing = [] }: Call): string {
  if (differing.length === 0) return ''
  return `. When it was recorded, these variables of the environment were others than they are now: ${list(differing)}`
}

/** Whether two calls send the same statements, whatever the values. */
export function sameShape(one: Profile, other: Profile): boolean {
  return shapeText(one) === shapeText(other)
}

/** Equal for calls that go the same way through the code. */
export function shapeText({ call, steps }: Profile): string {
  return JSON.stringify([call.name, call.said, steps.map(({ statements }) => statements)])
}
