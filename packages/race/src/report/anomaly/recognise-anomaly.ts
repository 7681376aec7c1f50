import type { History, Moment } from './history.ts'
import type { Failure } from '../../core/model.ts'
import type { Anomaly, AnomalyName } from './anomaly.ts'
import { staleness } from './staleness.ts'

export function recogniseAnomaly(history: History, failure: Failure): Anomaly {
  return (
    cutShort(history, failure) ??
    deadlock(history, failure) ??
    // A rule of the user's is about data first; without one, an error is what was found.
    (failure.kind === 'invariant'
      ? (staleness(history) ?? unhandledError(history, failure))
      : (unhandledError(history, failure) ?? staleness(history))) ?? { name: 'unknown' }
  )
}

function cutShort({ moments }: History, { serial }: Failure): Anomaly | undefined {
  const hit = moments.find(({ kind }) => kind === 'crash' || kind === 'lost-answer')
  if (hit === undefined) return undefined
  const { flow, index } = hit.step
  const done = moments.filter(({ step }) => step.flow === flow && step.index <= index)
  if (hit.kind === 'lost-answer' && !hasMore(serial, flow, done.length)) {
    return { name: 'lost answer', hit }
  }
  const commit = done.findLast(({ step }) => (step.footprint.ends?.writes.length ?? 0) > 0)
  return { name: 'lost after crash', hit, ...(commit === undefined ? {} : { commit }) }
}

/** Whether the flow has more steps when nobody cuts it. */
function hasMore(serial: Failure['serial'], flow: number, done: number): boolean {
  return serial.some(({ run }) => run.steps.filter((step) => step.flow === flow).length > done)
}

function deadlock({ moments }: History, failure: Failure): Anomaly | undefined {
  const hit = moments.find(
    ({ step, kind }) => step.answer.error?.sqlstate === '40P01' && kind !== 'victim',
  )
  if (hit === undefined && failure.kind !== 'deadlock') return undefined
  const circle = moments.filter(
    ({ step }) => step.waitedFor.length > 0 && (step === hit?.step || meets(step, hit, moments)),
  )
  return { name: 'deadlock', circle, ...(hit === undefined ? {} : { hit }) }
}

/** Whether a step was waiting when the victim's was ended. */
function meets(step: Moment['step'], hit: Moment | undefined, moments: readonly Moment[]): boolean {
  if (hit === undefined) return true
  const from = Math.max(step.index, hit.step.index)
  const until = step.resumedAfter ?? moments.length
  return step.flow !== hit.step.flow && from <= until
}

const unhandled: Readonly<Record<string, AnomalyName>> = {
  '40001': 'unhandled serialization failure',
  '23505': 'unhandled duplicate',
  '23P01': 'unhandled duplicate',
  // Schemas, tables, columns, types that were there already.
  '42P06': 'unhandled duplicate',
  '42P07': 'unhandled duplicate',
  '42701': 'unhandled duplicate',
  '42710': 'unhandled duplicate',
}

/** A flow that failed with an error of the server which no serial order gives. */
function unhandledError({ run, moments }: History, { serial }: Failure): Anomaly | undefined {
  for (const [flow, outcome] of run.outcomes.entries()) {
    const hit = firstError(moments.filter(({ step }) => step.flow === flow))
    // Some wrap the server's error in one of their own; the step has it in any case.
    const sqlstate = hit?.step.answer.error?.sqlstate
    // An HTTP server answers with 500 where a function throws.
    const failed = outcome.kind === 'threw' || ('said' in outcome && outcome.said === 'failed')
    if (!failed || hit === undefined || sqlstate === undefined) continue
    const alsoSerial = serial.some(({ run: { steps } }) =>
      steps.some((step) => step.flow === flow && step.answer.error?.sqlstate === sqlstate),
    )
    if (alsoSerial) continue
    return { name: unhandled[sqlstate] ?? 'unhandled error', hit, ...overtaken(moments, hit) }
  }
  return undefined
}

/** The flow's last look before the error, and the first commit of another flow after that. */
function overtaken(
  moments: readonly Moment[],
  hit: Moment,
): { readonly read?: Moment; readonly commit?: Moment } {
  const { flow, index } = hit.step
  const looks = moments.filter(
    ({ kind, step }) => kind === 'read' && step.flow === flow && step.index < index,
  )
  const until = hit.step.resumedAfter ?? index
  for (const read of looks.toReversed()) {
    const commit = moments.find(
      ({ step }) =>
        step.flow !== flow &&
        step.index > read.step.index &&
        step.index <= until &&
        step.footprint.ends?.how === 'commit' &&
        (step.footprint.opaque || step.footprint.ends.writes.length > 0),
    )
    if (commit !== undefined) return { read, commit }
  }
  return {}
}

/** The error that the others followed from: after it a transaction answers everything with 25P02. */
function firstError(moments: readonly Moment[]): Moment | undefined {
  const last = moments.findLast(({ step }) => step.answer.error !== undefined)
  if (last?.step.answer.error?.sqlstate !== '25P02') return last
  return moments.find(
    ({ step, transaction }) => step.answer.error !== undefined && transaction === last.transaction,
  )
}
