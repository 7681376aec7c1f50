import { flat } from './model.ts'
import { type Attempt, type RunRecord, tellingOf, type Write } from './record.ts'

/** Something that was told and is not so, or that was left behind. */
export interface Lie {
  /** Short, the same for lies of one sort: what a finding is known by while it is cut down. */
  readonly sort: string
  readonly told: string
  readonly so: string
}

/** Compares what the caller was told with what the tables hold, with what others saw, and with who had the lock. */
export function judge(record: RunRecord): Lie | undefined {
  const found = lieIn(record)
  return found && { sort: found[0], told: tellingOf(record.told), so: found[1] }
}

type Found = readonly [sort: string, so: string] | undefined

function lieIn(record: RunRecord): Found {
  const { told, attempts, present } = record
  if (told.kind === 'never') return ['no answer', 'the caller waits for ever']
  const said = attempts.flatMap((each) => each.lies)[0]
  if (said !== undefined) return ['call', said]
  const writes = attempts.flatMap((each) => each.writes)
  const late = writes.find(({ by, id }) => by === 'late' && present.has(id))
  if (late !== undefined) return ['late', 'a statement sent after the end took effect']
  const lost = writes.find(
    ({ by, state, id }) => by === 'late' && state === 'ok' && !present.has(id),
  )
  if (lost !== undefined)
    return ['late', 'a statement sent after the end was answered, to no effect']
  const root = writes.find(
    ({ by, state, id }) => by === 'root' && state === 'ok' && !present.has(id),
  )
  if (root !== undefined) return ['root', 'a row written by the root client is not there']
  const found = told.kind === 'resolved' ? resolved(record, told.replayed) : rejected(record)
  if (found !== undefined) return found
  if (record.leftovers !== '') return ['left open', record.leftovers]
  if (record.changedSettings !== undefined && record.changedSettings !== '')
    return ['settings', `the next user finds ${record.changedSettings}`]
  return undefined
}

/** Of the body's transaction, by what it was meant to be. */
function isThere({ present }: RunRecord, { id, by }: Write): boolean {
  return by !== 'root' && by !== 'late' && present.has(id)
}

function resolved(record: RunRecord, replayed: boolean): Found {
  const { present, attempts } = record
  const last = attempts.at(-1)
  const winner = replayed
    ? (attempts.find((each) => each.writes.some((write) => isThere(record, write))) ?? last)
    : last
  if (winner === undefined) return undefined
  for (const attempt of attempts) {
    if (attempt !== winner && attempt.writes.some((write) => isThere(record, write)))
      return ['failed attempt saved', `rows of attempt ${attempt.number} are there as well`]
  }
  for (const write of winner.writes) {
    if (write.by === 'root' || write.by === 'late') continue
    const there = present.has(write.id)
    if (write.state === 'ok' && !write.undone && !there)
      return ['resolved, not saved', `a row that was written (${write.by}) is not there`]
    if (write.state === 'ok' && write.undone && write.by === 'body' && there)
      return ['resolved, not undone', 'a row is there that was rolled back to a savepoint']
    if (write.state === 'failed' && there)
      return ['failed, but saved', 'a row is there whose statement was answered with an error']
  }
  if (winner.seenAfter !== undefined)
    return ['torn', `another session saw its rows after "${winner.seenAfter}"`]
  if (winner.freeAfter !== undefined)
    return ['lock lost', `another session could take the lock after "${winner.freeAfter}"`]
  return undefined
}

/** What anybody may be told about a transaction whose outcome nobody knows. */
const anything = new Set(['COMMIT_UNKNOWN'])

function rejected(record: RunRecord): Found {
  const { told, attempts } = record
  if (told.kind !== 'rejected' || anything.has(told.code)) return undefined
  const there = attempts.flatMap((attempt) =>
    attempt.writes.filter((write) => isThere(record, write)).map((write) => ({ attempt, write })),
  )
  // Refused before it was sent means that nothing is saved, like every other error.
  if ((told.code !== 'TX_ENDED_INSIDE' || told.ended === 'refused') && there.length > 0)
    return ['rejected, but saved', `${there.length} of its rows are there`]
  // Something has committed what came before it. What came after the last that could is never there.
  const stayed = there.find(
    ({ attempt: { endings, opaque }, write }) =>
      write.by === 'body' && write.endings === endings.length && (write.endings > 0 || !opaque),
  )
  if (stayed !== undefined)
    return ['rest stayed', 'a row is there that was written after the transaction had ended']
  const accused = accusedWrongly(record)
  return accused === undefined ? undefined : ['accused', accused]
}

function has({ body }: RunRecord, kind: string): boolean {
  return flat(body.actions).some((each) => each.do === kind)
}

/** An error that blames the body for what it did not do. */
function accusedWrongly(record: RunRecord): string | undefined {
  const { told, attempts, body } = record
  if (told.kind !== 'rejected') return undefined
  const { code } = told
  const any = (of: (attempt: Attempt) => boolean): boolean => attempts.some(of)
  const hasEndings = any(({ endings }) => endings.length > 0)
  // What nobody can look into may have ended it, if something went wrong afterwards.
  const isDark = any(({ opaque, disturbed }) => opaque && disturbed) || has(record, 'throw')
  if (code === 'TX_ENDED_INSIDE' && !hasEndings && !isDark)
    return 'the body did not end its transaction'
  const justLate = body.late.some(({ when }) => when !== 'outside')
  if (code === 'TX_UNAWAITED' && !has(record, 'unawaited') && !justLate)
    return 'the body waited for all its statements'
  if (code === 'TX_NESTED' && !hasEndings && !has(record, 'nested'))
    return 'the body began no transaction'
  const [only, ...more] = attempts
  const isClean = only !== undefined && more.length === 0 && !only.disturbed && !hasEndings
  if (isClean && !has(record, 'root') && !justLate)
    return `the body did nothing wrong: ${told.text}`
  return undefined
}
