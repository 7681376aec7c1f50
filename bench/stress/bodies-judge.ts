import { endsTransaction, flat } from './bodies-model.ts'
import {
  type Attempt,
  type Caller,
  type RunRecord,
  tellingOf,
  type Write,
} from './bodies-record.ts'

/** Something that was told and is not so, or that was left behind. */
export interface Lie {
  /** Short, the same for lies of one sort: what a finding is known by while it is cut down. */
  readonly sort: string
  readonly told: string
  readonly so: string
}

/** What anybody may have told about a transaction whose outcome nobody knows. */
const anything = new Set(['COMMIT_UNKNOWN', 'LEDGER_OUTCOME_UNKNOWN'])

/** Compares what callers were told with what the tables hold and with who held the lock. */
export function judge(record: RunRecord): Lie | undefined {
  for (const caller of record.callers) {
    const lie = judgeCaller(record, caller)
    if (lie !== undefined) return lie
  }
  return judgeTogether(record)
}

function judgeCaller(record: RunRecord, caller: Caller): Lie | undefined {
  const { told, attempts } = caller
  const lie = (sort: string, so: string): Lie => ({ sort, told: tellingOf(told), so })
  if (told.kind === 'never') return lie('no answer', 'the caller waits for ever')
  const said = attempts.flatMap((each) => each.lies)
  if (said[0] !== undefined) return lie('call', said[0])
  const late = judgeLate(record, attempts, told.kind === 'rejected' && mayBeOutside(told.code))
  if (late !== undefined) return lie('late', late)
  const root = attempts
    .flatMap((each) => each.writes)
    .find(({ by, state, id }) => by === 'root' && state === 'ok' && !record.present.has(id))
  if (root !== undefined) return lie('root', 'a row written by the root client is not there')
  if (told.kind === 'resolved') {
    const so = judgeResolved(record, attempts, told.replayed)
    return so && lie(...so)
  }
  if (anything.has(told.code)) return undefined
  const accused = accusedWrongly(record, caller)
  if (accused !== undefined) return lie('accused', accused)
  // Refused before it was sent means that nothing is saved, like every other error.
  if (told.code === 'TX_ENDED_INSIDE' && told.ended !== 'refused') {
    const so = judgeEnded(record, attempts, told.ended)
    return so === undefined ? undefined : lie('ended inside', so)
  }
  const there = attempts.flatMap((each) => each.writes.filter((write) => isThere(record, write)))
  if (there.length === 0) return undefined
  return lie('rejected, but saved', `${there.length} of its rows are there`)
}

/** A transaction that was not ours any more, or whose end is unknown: what was sent then may have stayed. */
function mayBeOutside(code: string): boolean {
  return code === 'TX_ENDED_INSIDE' || anything.has(code)
}

/** Of the body's transaction, by what it was meant to be. */
function isThere({ present }: RunRecord, { id, by }: Write): boolean {
  return by !== 'root' && by !== 'late' && present.has(id)
}

function isElsewhere({ present }: RunRecord, { origin }: Attempt, { id }: Write): boolean {
  const at = present.get(id)?.origin
  if (at === undefined || origin === undefined) return false
  return at.pid !== origin.pid || at.began !== origin.began
}

function judgeLate(
  record: RunRecord,
  attempts: readonly Attempt[],
  mayHaveStayed: boolean,
): string | undefined {
  for (const attempt of attempts) {
    for (const write of attempt.writes) {
      const there = record.present.has(write.id)
      if (write.by === 'late') {
        if (there) return 'a statement sent after the end took effect'
        if (write.state === 'ok') return 'a statement sent after the end was answered, to no effect'
      }
      if (write.by === 'just late' && !mayHaveStayed && isElsewhere(record, attempt, write)) {
        return 'a statement sent after the body had returned took effect on its own'
      }
    }
  }
  return undefined
}

function judgeResolved(
  record: RunRecord,
  attempts: readonly Attempt[],
  replayed: boolean,
): readonly [string, string] | undefined {
  const { present } = record
  const last = attempts.at(-1)
  const winner = replayed
    ? (attempts.find((each) => each.writes.some((write) => isThere(record, write))) ?? last)
    : last
  if (winner === undefined) return undefined
  for (const attempt of attempts) {
    if (attempt !== winner && attempt.writes.some((write) => isThere(record, write))) {
      return ['failed attempt saved', `rows of attempt ${attempt.number} are there as well`]
    }
  }
  for (const write of winner.writes) {
    if (write.by === 'root' || write.by === 'late') continue
    const there = present.get(write.id)
    if (write.state === 'ok' && !write.undone && there === undefined) {
      return ['resolved, not saved', `a row that was written (${write.by}) is not there`]
    }
    if (write.state === 'failed' && there !== undefined) {
      return ['failed, but saved', 'a row is there whose statement was answered with an error']
    }
    if (there !== undefined && isElsewhere(record, winner, write)) {
      return ['torn', 'a row was saved by another transaction than the one that was opened for it']
    }
    if (there?.held === false) return ['lock lost', 'a row was written without the lock']
  }
  if (winner.freeAfter !== undefined) {
    return ['lock lost', `another session could take the lock after "${winner.freeAfter}"`]
  }
  return undefined
}

function judgeEnded(
  record: RunRecord,
  attempts: readonly Attempt[],
  ended: string | undefined,
): string | undefined {
  const writes = attempts.flatMap((attempt) =>
    attempt.writes
      .filter(({ by }) => by === 'body' || by === 'unawaited')
      .map((write) => ({ attempt, write })),
  )
  if (ended === 'rolled back') {
    const stayed = writes.some(({ attempt, write }) => {
      if (!record.present.has(write.id)) return false
      const known = record.present.get(write.id)?.origin !== undefined
      return known ? !isElsewhere(record, attempt, write) : !write.afterEnding
    })
    if (stayed) return 'a row that was written before that is there'
  }
  if (ended === 'committed') {
    const [only, ...more] = attempts.flatMap(({ controls }) => controls.filter(endsTransaction))
    const first = writes.filter(
      ({ write }) =>
        write.by === 'body' && write.state === 'ok' && !write.undone && !write.afterEnding,
    )
    const simple = only !== undefined && more.length === 0 && !has(record, 'kill')
    if (simple && first.length > 0 && !first.some(({ write }) => record.present.has(write.id))) {
      return 'nothing that was written before that is there'
    }
  }
  return undefined
}

function has({ body }: RunRecord, kind: string): boolean {
  return flat(body.actions).some((each) => each.do === kind)
}

/** The marker is how the library knows its transaction where the client tells nothing. */
function touchesMarker({ body }: RunRecord): boolean {
  return flat(body.actions).some(
    (each) => each.do === 'spoof' || (each.do === 'set' && /holdfast|RESET ALL/.test(each.text)),
  )
}

/** An error that blames the body for what it did not do. */
function accusedWrongly(record: RunRecord, { told, attempts }: Caller): string | undefined {
  if (told.kind !== 'rejected') return undefined
  const controls = attempts.flatMap((each) => each.controls)
  const { code } = told
  const mayHaveEnded = controls.length > 0 || touchesMarker(record) || isEndedByClient(record)
  if (code === 'TX_ENDED_INSIDE' && !mayHaveEnded) {
    return 'the body did not end its transaction'
  }
  const justLate = record.body.late.some(({ when }) => when === 'microtask' || when === 'immediate')
  if (code === 'TX_UNAWAITED' && !has(record, 'unawaited') && !justLate) {
    return 'the body waited for all its statements'
  }
  if (code === 'TX_NESTED' && controls.length === 0 && !hasOpenNested(record)) {
    return 'the body began no transaction'
  }
  const [only, ...more] = attempts
  const clean =
    only !== undefined &&
    more.length === 0 &&
    !only.disturbed &&
    only.controls.length === 0 &&
    !has(record, 'root')
  if (clean && !record.body.twin) return `the body did nothing wrong: ${told.text}`
  return undefined
}

/** Prisma commits the outermost transaction where a nested one fails in a nested one. */
function isEndedByClient({ body }: RunRecord): boolean {
  if (body.client !== 'prisma') return false
  return flat(body.actions).some(
    (each) => each.do === 'nested' && each.actions.some((inner) => inner.do === 'nested'),
  )
}

function judgeTogether(record: RunRecord): Lie | undefined {
  const [first, second] = record.callers
  const told = record.callers.map((each) => tellingOf(each.told)).join(' and ')
  if (first?.told.kind === 'resolved' && second?.told.kind === 'resolved') {
    const [a, b] = [first.attempts.at(-1), second.attempts.at(-1)]
    if (a?.leftAt !== undefined && b?.leftAt !== undefined) {
      if (a.enteredAt < b.leftAt && b.enteredAt < a.leftAt) {
        return { sort: 'overlap', told, so: 'two bodies of one key ran at the same time' }
      }
    }
  }
  if (record.leftovers !== '') return { sort: 'left open', told, so: record.leftovers }
  if (record.changedSettings !== undefined && record.changedSettings !== '') {
    return { sort: 'settings', told, so: `the next user finds ${record.changedSettings}` }
  }
  return undefined
}

/** A transaction inside of ours that was open when the body returned: TypeORM counts them as transactions. */
function hasOpenNested({ body }: RunRecord): boolean {
  return flat(body.actions).some((action) => action.do === 'unawaited' && action.what === 'nested')
}
