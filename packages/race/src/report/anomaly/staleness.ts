/** Recognises what a stale read has led to, from who must have come before whom. */
import { overlap } from '../../core/footprint.ts'
import type { Anomaly, AnomalyName } from './anomaly.ts'
import { assignedBy } from '../fix/assignments.ts'
import { dependenciesOf } from './dependencies.ts'
import { changedNothing, type History, type Moment, relationOf } from './history.ts'
import { diagnoseLocks } from './lock-fault.ts'
import { clauseText } from '../sql/shorten.ts'
import { namesOtherRow } from './row-key.ts'
import { keyOf } from '../words.ts'

/** A read that was overtaken by a commit, and a write that relied on it: the best of all such. */
export function staleness(history: History): Anomaly | undefined {
  const dependencies = dependenciesOf(history)
  const candidates = dependencies
    .filter(({ kind }) => kind === 'overtaken')
    .flatMap(({ read, commit, object, from, to }): Ranked[] => {
      if (read === undefined) return []
      const back = dependencies.filter((one) => one.from === to && one.to === from)
      const otherRead = back.find(({ kind }) => kind === 'overtaken')?.read
      const write = reliedOn(history, read, commit)
      const otherWrite = writeBehind(history, commit, object, write ?? read)
      const circle = back.length > 0
      // Without a circle it is only "one before the other", unless the write came after the commit.
      if (!circle && (write === undefined || write.step.index < commit.step.index)) return []
      const found = { read, commit, write, otherRead, otherWrite, object, circle }
      const began =
        history.moments.find(({ step }) => step.flow === read.step.flow)?.step.index ?? 0
      return [
        {
          ...found,
          skew: readSkew(back, read, began),
          half: halfSeen(back, read, commit, began),
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
  const same = write !== undefined && writtenRelations(write).includes(relationOf(object))
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
  const after = later.filter(({ step }) => step.index > commit.step.index)
  const ofTheSame = (write: Moment): boolean =>
    !changedNothing(write) &&
    writtenRelations(write).some((one) => readRelations(read).includes(one))
  return (
    after.find(ofTheSame) ??
    later.find(ofTheSame) ??
    after[0] ??
    later[0] ??
    own.find((write) => write.transaction === read.transaction && ofTheSame(write))
  )
}

function readRelations({ step }: Moment): string[] {
  return step.footprint.touches.map(({ object }) => relationOf(object))
}

/** Of several the one to the row of this side: where only tables are known, any of them may be meant. */
function writeBehind(
  history: History,
  commit: Moment,
  object: string,
  own: Moment,
): Moment | undefined {
  const all = history.moments.filter(
    ({ kind, step, transaction }) =>
      kind === 'write' &&
      step.flow === commit.step.flow &&
      step.index <= commit.step.index &&
      transaction === commit.transaction &&
      step.footprint.touches.some(
        (touch) => writes.has(touch.mode) && overlap(touch.object, object),
      ),
  )
  return all.findLast((one) => !namesOtherRow(history, one, own)) ?? all.at(-1)
}

/** Another read of the same flow that did see a commit of the other, one that a snapshot from the beginning on would not show. */
function readSkew(back: Back, read: Moment, began: number): Moment | undefined {
  return back.find(
    ({ kind, read: other, commit }) =>
      kind === 'seen' && other !== read && commit.step.index > began,
  )?.read
}

type Back = readonly {
  readonly kind: string
  readonly read?: Moment
  readonly commit: Moment
}[]

/** A commit that was seen, of another transaction than the one that overtook the read: no snapshot shows both, or neither. */
function halfSeen(back: Back, read: Moment, commit: Moment, began: number): Moment | undefined {
  return back.find(
    (one) =>
      one.kind === 'seen' &&
      (one.read === read || one.commit.step.index < began) &&
      one.commit.transaction !== commit.transaction,
  )?.commit
}

/** A check of a foreign key only looks whether the parent is there. */
const writes: ReadonlySet<string> = new Set(['lock', 'insert', 'append'])

/** The relations that a step may have written; one statement can write several. */
function writtenRelations({ step }: Moment): readonly string[] {
  return step.footprint.touches
    .filter(({ mode }) => writes.has(mode))
    .map(({ object }) => relationOf(object))
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
    name: nameOfStale(history, found, write),
    ...steps,
    ...(write === read ? { oneStatement: true } : {}),
    ...(lockFault === undefined ? {} : { lockFault }),
  }
}

function nameOfStale(
  history: History,
  { read, object, otherRead, otherWrite }: Ranked,
  write: Moment,
): AnomalyName {
  const sameRelation = writtenRelations(write).includes(relationOf(object))
  const verbs = [verbOf(write), otherWrite && verbOf(otherWrite)]
  if (sameRelation && verbs.every((verb) => verb === 'INSERT')) return 'check-then-insert'
  if (sameRelation && !verbs.includes('INSERT') && otherWrite !== undefined) {
    if (!sameRows(history, write, otherWrite)) return 'write skew'
    // It replaced nothing, because it found nothing.
    if (changedNothing(write)) return 'stale check'
    // What is computed from the row as it is loses nothing; only the check before it was stale.
    if (computesFromItself(write)) return 'stale check'
    return claims(read, write) ? 'double claim' : 'lost update'
  }
  return otherRead === undefined ? 'stale check' : 'write skew'
}

/** `used = used + 1`, of ON CONFLICT too; `EXCLUDED.used` is what was sent. */
function computesFromItself(write: Moment): boolean {
  return assignedBy(write).some(({ column, tokens }) =>
    tokens.some(({ text, kind }, at) => {
      return text === column && kind !== 'string' && tokens[at - 2]?.upper !== 'EXCLUDED'
    }),
  )
}

/** As far as rows are known they are compared; else, unless both name different keys, they may be the same. */
function sameRows(history: History, one: Moment, other: Moment): boolean {
  const rows = [one, other].map((moment) => writtenRows(moment))
  const [mine = [], theirs = []] = rows
  if (rows.every(({ length }) => length > 0)) return mine.some((row) => theirs.includes(row))
  return !namesOtherRow(history, one, other)
}

function writtenRows({ step }: Moment): string[] {
  return step.footprint.touches
    .filter(({ mode, object }) => mode === 'lock' && object.includes('#'))
    .map(({ object }) => object)
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

/** A queue: the read asks for one of several, and the write puts a name or a state on it, or what the read asked for. */
function claims(read: Moment, write: Moment): boolean {
  const { limited, where, whereTokens } = read.statement
  if (!limited) return false
  if (write.statement.sets.some(({ column }) => claiming.test(column))) return true
  const key = keyOf(write)?.column
  // Some clients put a LIMIT behind every key.
  if (key === undefined || where.some(({ column }) => column === key)) return false
  return assignedBy(write).some(({ column }) => whereTokens.some(({ text }) => text === column))
}
