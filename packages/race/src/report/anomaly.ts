import type { Failure } from '../core/model.ts'
import { dependenciesOf } from './dependencies.ts'
import { overlap } from '../core/footprint.ts'
import { changedNothing, type History, type Moment, relationOf } from './history.ts'
import { diagnoseLocks, type LockFault } from './lock-fault.ts'
import { clauseText } from './shorten.ts'
import { keyOf } from './words.ts'

/** The names of what can go wrong at PostgreSQL's isolation levels. */
export type AnomalyName =
  | 'check-then-insert'
  | 'lost update'
  | 'double claim'
  | 'write skew'
  | 'stale check'
  | 'read skew'
  | 'non-repeatable read'
  | 'intermediate read'
  | 'deadlock'
  | 'unhandled serialization failure'
  | 'unhandled duplicate'
  | 'unhandled error'
  | 'lost after crash'
  | 'lost answer'
  | 'unknown'

/** What was recognised in a failing run, and the steps that show it. */
export interface Anomaly {
  readonly name: AnomalyName
  /** The read that was no longer true when it was acted upon, and who read it. */
  readonly read?: Moment
  /** The commit that made it untrue. */
  readonly commit?: Moment
  /** An earlier commit of the same flow, which the read did see. */
  readonly seen?: Moment
  /** What was done on the strength of the read. */
  readonly write?: Moment
  /** The same of the other side, where it did the same. */
  readonly otherRead?: Moment
  readonly otherWrite?: Moment
  /** Check and write were one statement. */
  readonly oneStatement?: boolean
  /** There was a lock, and it did not help. */
  readonly lockFault?: LockFault
  /** Steps that wait for each other, in the order of the circle. */
  readonly circle?: readonly Moment[]
  /** The step at which the flow was cut, or whose error nobody handled. */
  readonly hit?: Moment
}

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
    if (outcome.kind !== 'threw' || hit === undefined || sqlstate === undefined) continue
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

/** A read that was overtaken by a commit, and a write that relied on it: the best of all such. */
function staleness(history: History): Anomaly | undefined {
  const dependencies = dependenciesOf(history)
  const candidates = dependencies
    .filter(({ kind }) => kind === 'overtaken')
    .flatMap(({ read, commit, object, from, to }): Ranked[] => {
      if (read === undefined) return []
      const back = dependencies.filter((one) => one.from === to && one.to === from)
      const otherRead = back.find(({ kind }) => kind === 'overtaken')?.read
      const write = reliedOn(history, read, commit)
      const otherWrite = writeBehind(history, commit, object)
      const circle = back.length > 0
      // Without a circle it is only "one before the other", unless the write came after the commit.
      if (!circle && (write === undefined || write.step.index < commit.step.index)) return []
      const found = { read, commit, write, otherRead, otherWrite, object, circle }
      return [
        {
          ...found,
          skew: readSkew(back, read),
          half: halfSeen(back, read, commit),
          rank: rankOf(found),
        },
      ]
    })
    .toSorted((one, other) => other.rank - one.rank)
  const [best] = candidates
  if (best === undefined) return undefined
  return anomalyOf(history, best)
}

interface Candidate {
  readonly read: Moment
  readonly commit: Moment
  readonly write: Moment | undefined
  readonly otherRead: Moment | undefined
  readonly otherWrite: Moment | undefined
  readonly object: string
  readonly circle: boolean
}

interface Ranked extends Candidate {
  readonly skew: Moment | undefined
  readonly half: Moment | undefined
  readonly rank: number
}

/** A circle counts most; then a write after the commit; then a plain read close to its write. */
function rankOf({ read, commit, write, object, circle }: Candidate): number {
  const same = write !== undefined && relationOf(object) === writtenRelation(write)
  const before = write === undefined ? 0 : write.step.index - read.step.index
  return (
    (circle ? 1000 : 0) +
    (write === undefined ? 0 : 400) +
    (write !== undefined && write.step.index > commit.step.index ? 200 : 0) +
    (same ? 100 : 0) +
    (read.kind === 'read' ? 50 : 0) +
    // It looks for itself, so that is what it relied on.
    (read === write && read.statement.verb === 'INSERT' ? 80 : 0) -
    Math.min(before, 40)
  )
}

/**
 * The first write of the reader's flow after its read that was committed, the later ones being less to blame. Else one
 * before it to the same table, which a look at the result has let stand.
 */
function reliedOn({ moments }: History, read: Moment, commit: Moment): Moment | undefined {
  const own = moments.filter(
    ({ kind, step, transaction }) =>
      kind === 'write' && step.flow === read.step.flow && transaction?.end === 'commit',
  )
  const later = own.filter(({ step }) => step.index >= read.step.index)
  return (
    later.find(({ step }) => step.index > commit.step.index) ??
    later[0] ??
    own.find(
      (write) =>
        write.transaction === read.transaction &&
        readRelations(read).includes(writtenRelation(write) ?? ''),
    )
  )
}

function readRelations({ step }: Moment): string[] {
  return step.footprint.touches.map(({ object }) => relationOf(object))
}

function writeBehind({ moments }: History, commit: Moment, object: string): Moment | undefined {
  return moments.findLast(
    ({ kind, step, transaction }) =>
      kind === 'write' &&
      step.flow === commit.step.flow &&
      step.index <= commit.step.index &&
      transaction === commit.transaction &&
      step.footprint.touches.some(
        (touch) => touch.mode !== 'read' && overlap(touch.object, object),
      ),
  )
}

/** A later read of the same flow that did see the other's commit. */
function readSkew(back: Back, read: Moment): Moment | undefined {
  return back.find(({ kind, read: later }) => kind === 'seen' && later !== read)?.read
}

type Back = readonly {
  readonly kind: string
  readonly read?: Moment
  readonly commit: Moment
}[]

/** A commit that the read did see, of a transaction before the one that overtook it. */
function halfSeen(back: Back, read: Moment, commit: Moment): Moment | undefined {
  return back.find(
    (one) =>
      one.kind === 'seen' && one.read === read && one.commit.transaction !== commit.transaction,
  )?.commit
}

/** The relation that a step wrote: the one it names, else the first that it could have written. */
function writtenRelation({ step, statement }: Moment): string | undefined {
  const relations = step.footprint.touches
    .filter(({ mode }) => ['lock', 'insert', 'append'].includes(mode))
    .map(({ object }) => relationOf(object))
  const named = statement.table?.split('.').at(-1)
  return relations.find((relation) => relation.split('.').at(-1) === named) ?? relations[0]
}

function anomalyOf(history: History, found: Ranked): Anomaly {
  const { read, commit, write, otherRead, otherWrite } = found
  const steps = {
    read,
    commit,
    ...(write === undefined ? {} : { write }),
    ...(otherRead === undefined ? {} : { otherRead }),
    ...(otherWrite === undefined ? {} : { otherWrite }),
  }
  if (write === undefined) {
    if (found.skew !== undefined) {
      const name = readTheSame(read, found.skew) ? 'non-repeatable read' : 'read skew'
      return { name, ...steps, otherRead: found.skew }
    }
    return found.half === undefined
      ? { name: 'stale check', ...steps }
      : { name: 'intermediate read', ...steps, seen: found.half }
  }
  const lockFault = diagnoseLocks(history, { read, commit, write })
  return {
    name: nameOfStale(found, write),
    ...steps,
    ...(write === read ? { oneStatement: true } : {}),
    ...(lockFault === undefined ? {} : { lockFault }),
  }
}

function nameOfStale({ read, object, otherRead, otherWrite }: Ranked, write: Moment): AnomalyName {
  const sameRelation = relationOf(object) === writtenRelation(write)
  const verbs = [verbOf(write), otherWrite && verbOf(otherWrite)]
  if (sameRelation && verbs.every((verb) => verb === 'INSERT')) return 'check-then-insert'
  if (sameRelation && !verbs.includes('INSERT') && otherWrite !== undefined) {
    if (!sameRows(write, otherWrite)) return 'write skew'
    // It replaced nothing, because it found nothing.
    if (changedNothing(write)) return 'stale check'
    // What is computed from the row as it is loses nothing; only the check before it was stale.
    if (write.statement.assigned.some(({ fromItself }) => fromItself)) return 'stale check'
    return claims(read, write) ? 'double claim' : 'lost update'
  }
  return otherRead === undefined ? 'stale check' : 'write skew'
}

/** As far as rows are known they are compared; else, unless both name different keys, they may be the same. */
function sameRows(one: Moment, other: Moment): boolean {
  const rows = [one, other].map((moment) => writtenRows(moment))
  const [mine = [], theirs = []] = rows
  if (rows.every(({ length }) => length > 0)) return mine.some((row) => theirs.includes(row))
  const [key, there] = [keyOf(one), keyOf(other)]
  return key?.column !== there?.column || key?.value === there?.value
}

function writtenRows(moment: Moment): string[] {
  const relation = writtenRelation(moment)
  return moment.step.footprint.touches
    .filter(({ mode, object }) => mode === 'lock' && relationOf(object) === relation)
    .map(({ object }) => object)
    .filter((object) => object.includes('#'))
}

/** Two looks at the same rows, and not at two parts of something. */
function readTheSame(one: Moment, other: Moment): boolean {
  const objects = one.step.footprint.touches.map(({ object }) => object)
  return other.step.footprint.touches.some(({ object }) =>
    objects.some((mine) => overlap(mine, object)),
  )
}

/** What ON CONFLICT DO UPDATE does to a row that is there is an UPDATE. */
function verbOf({ statement }: Moment): string {
  const upsert = clauseText(statement, 'ON')?.includes('DO UPDATE') === true
  return upsert ? 'UPDATE' : statement.verb
}

const claiming = /^(?:status|state|claimed|locked|worker|owner|assigned|taken|picked|started)/i

/** A queue: the read asks for one of several, and the write puts a name or a state on it. */
function claims(read: Moment, write: Moment): boolean {
  return read.statement.limited && write.statement.sets.some(({ column }) => claiming.test(column))
}
