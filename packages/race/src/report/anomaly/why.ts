import type { Anomaly } from './anomaly.ts'
import { assignedBy } from '../fix/assignments.ts'
import { overlap } from '../../core/footprint.ts'
import { changedNothing, type History, type Moment, nameOf } from './history.ts'
import { sawOf } from '../saw.ts'
import { isAboutObjects, list, possessive, ref, subjectOf, tableOf } from '../words.ts'

/** What happened, in plain words that name the steps by number. */
export function whyOf(anomaly: Anomaly, history: History): string {
  const { name, read, commit, write, hit } = anomaly
  if (name === 'deadlock') return deadlock(anomaly, history)
  if (name === 'lost after crash' || name === 'lost answer') return cutShort(anomaly, history)
  if (name === 'unhandled serialization failure' && hit !== undefined) {
    return `PostgreSQL refused ${ref(hit)} because another flow changed the same data first, with 40001. The data is unharmed, but nothing ran ${possessive(hit.who)} transaction again, so it failed where it would have succeeded alone.`
  }
  if (name === 'unhandled error' && hit !== undefined) {
    const { sqlstate, message } = hit.step.answer.error ?? { sqlstate: '', message: '' }
    return `${ref(hit)} failed with ${sqlstate}: ${message}. No order of the flows one after the other gives that error, and it ended the flow.`
  }
  if (name === 'unhandled duplicate' && hit !== undefined) {
    const what = isAboutObjects(hit) ? 'something' : 'a row'
    const looked =
      read === undefined || commit === undefined
        ? `that another flow had made after ${hit.who} looked`
        : `that ${ref(commit)} had made after ${ref(read)} looked`
    return `${ref(hit)} met ${what} ${looked}. PostgreSQL kept the data right, but its error ${hit.step.answer.error?.sqlstate ?? '23505'} ended the flow, which no order of the flows one after the other does.`
  }
  if (read === undefined || commit === undefined) {
    return 'The result differs from that of every serial order, but no known pattern was recognised in the steps. Compare the final states below, and step through the timeline.'
  }
  if (name === 'read skew') return readSkew(anomaly, read, commit)
  if (name === 'non-repeatable read') return readTwice(anomaly, read, commit)
  if (name === 'intermediate read') return between(anomaly, read, commit)
  if (write === undefined) {
    return `${ref(read)} read ${subjectOf(read)}${seen(read)}. ${ref(commit)} changed it afterwards, and ${read.who} went on with what it had read.`
  }
  return [stale(anomaly, read, commit, write), lockSentence(anomaly, history)]
    .filter((part) => part !== '')
    .join(' ')
}

function stale(anomaly: Anomaly, read: Moment, commit: Moment, write: Moment): string {
  const { name, oneStatement, otherRead, otherWrite } = anomaly
  if (oneStatement === true) {
    return `${ref(write)} checks and writes in one statement, but a statement is not a moment: its check reads a snapshot, and what ${possessive(commit.who)} ${otherWrite === undefined ? 'transaction' : `${otherWrite.statement.verb} (${otherWrite.number})`} did was not committed (${commit.number}) when that was taken.`
  }
  const believed = `${ref(read)} read ${subjectOf(read)}${seen(read)}`
  if (name === 'lost update' || name === 'double claim') {
    const lost =
      name === 'double claim'
        ? `Both took the same row: ${ref(write)} overwrote a claim that was already committed.`
        : `${ref(write)} rests on the old value and replaced what ${commit.who} had written.`
    const made = read.step.answer.rowCount === 0 ? 'made' : 'changed'
    return `${believed}. ${ref(commit)} ${made} that row ${afterwards(commit, write, read)}. ${lost}`
  }
  if (name === 'write skew' && otherRead !== undefined && otherWrite !== undefined) {
    return `${believed}, and ${ref(otherRead)} read ${subjectOf(otherRead)}${seen(otherRead)}. Each changed what the other relied on, (${otherWrite.number}) and (${write.number}), in different rows, so neither had to wait and neither saw the other.`
  }
  if (write.step.index < commit.step.index && otherRead !== undefined) {
    return `${believed}, and ${ref(otherRead)} read the same${seen(otherRead)}, before either had committed. Neither could see what the other was about to write, (${[write.number, otherWrite?.number].filter((one) => one !== undefined).join(') and (')}).`
  }
  const adds = otherWrite?.statement.verb === 'INSERT' && tableOf(otherWrite) === tableOf(read)
  const isUpsert = adds && assignedBy(otherWrite).length > 0
  const wasThere = isUpsert && read.step.answer.rowCount > 0
  const verb = adds && !wasThere ? (isUpsert ? 'made that row' : 'added to it') : 'changed it'
  if (changedNothing(write)) {
    return `${believed}. ${ref(commit)} ${verb} ${afterwards(commit, write, read)}, which then found nothing to ${write.statement.verb.toLowerCase()}.`
  }
  if (commit.step.index > write.step.index) {
    const when =
      otherWrite && otherWrite.step.index < read.step.index
        ? `what (${otherWrite.number}) had written`
        : 'its change'
    return `${believed}. ${ref(commit)} made ${when} visible only after ${read.who} had written (${write.number}), so ${read.who} decided on something that was not so.`
  }
  return `${believed}. ${ref(commit)} ${verb} before ${read.who} wrote (${write.number}), so ${read.who} decided on something that was no longer true.`
}

function afterwards(commit: Moment, write: Moment, read: Moment): string {
  return commit.step.index < write.step.index
    ? `before ${read.who} wrote (${write.number})`
    : `while ${read.who} waited with its own write (${write.number})`
}

function readSkew({ otherRead }: Anomaly, read: Moment, commit: Moment): string {
  const later = otherRead === undefined ? '' : ` and ${ref(otherRead)} after it${seen(otherRead)}`
  return `${ref(read)} read ${subjectOf(read)}${seen(read)} before ${ref(commit)},${later}: two halves of a change that was made at once. At READ COMMITTED every statement has a snapshot of its own.`
}

function readTwice({ otherRead }: Anomaly, read: Moment, commit: Moment): string {
  const later = otherRead === undefined ? '' : ` and ${ref(otherRead)} after it${seen(otherRead)}`
  return `${ref(read)} read ${subjectOf(read)}${seen(read)} before ${ref(commit)},${later}. At READ COMMITTED every statement has a snapshot of its own, so what was read once may be different the next time.`
}

function between({ seen: first }: Anomaly, read: Moment, commit: Moment): string {
  const before = first === undefined ? '' : ` after ${ref(first)} and`
  return `${ref(read)} read ${subjectOf(read)}${seen(read)}${before} before ${ref(commit)}: ${commit.who} makes one change in two transactions, and between them everybody sees half of it.`
}

/** ` → 99`, if there is something to tell. */
function seen(read: Moment): string {
  const saw = sawOf(read.step)
  return saw === undefined ? '' : ` (→ ${saw})`
}

function lockSentence({ lockFault, read }: Anomaly, history: History): string {
  if (lockFault === undefined || read === undefined) return ''
  const { kind, lock, otherLock } = lockFault
  const held = `${ref(lock)}`
  if (kind === 'too-late') {
    return `There is a lock, ${held}, but it comes after the read (${read.number}) that it should protect.`
  }
  if (kind === 'no-row') {
    return `There is a lock, ${held}, but it found no row, and a row that is not there cannot be locked.`
  }
  if (kind === 'released') {
    return `There is a lock, ${held}, but it was gone at (${(lock.transaction?.last ?? lock.step.index) + 1}): ${lock.transaction?.autocommit === true ? 'no transaction was open, so it ended with its statement' : 'its transaction was over'}.`
  }
  if (kind === 'one-sided') {
    return `${held} takes a lock, the other side takes none, and a lock that only one side takes keeps nobody out.`
  }
  if (kind === 'different' && otherLock !== undefined) {
    return `Both lock, but not the same: ${held} locks ${lockedNames(lock, history)}, ${ref(otherLock)} locks ${lockedNames(otherLock, history)}.`
  }
  return `${held} did wait for the lock, but the read (${read.number}) used a snapshot from before the wait.`
}

function lockedNames({ step }: Moment, history: History): string {
  const locked = step.footprint.touches.filter(({ mode }) => mode !== 'read')
  return list(locked.map(({ object }) => nameOf(object, history)))
}

function deadlock({ circle = [], hit }: Anomaly, history: History): string {
  const waits = circle.map((moment) => {
    const held = heldBy(history, moment)
    const holding = held === undefined ? '' : ` holds ${subjectOf(held)} (${held.number}) and`
    const others = moment.step.waitedFor.map((flow) => history.flows[flow] ?? '?')
    return `${moment.who}${holding} waits for ${list(others)} at (${moment.number})`
  })
  const end =
    hit === undefined
      ? 'Nobody can go on.'
      : `Nobody could go on, so PostgreSQL ended ${ref(hit)} with 40P01.`
  return waits.length < 2
    ? `The flows locked the same rows in different orders. ${end}`
    : `A circle: ${waits.join('; ')}. ${end}`
}

/** The step of another flow that locked what this one waits for. */
export function holderOf({ moments }: History, waiting: Moment): Moment | undefined {
  const wanted = waiting.step.footprint.touches.filter(({ mode }) => mode !== 'read')
  return moments.findLast(
    ({ step, kind }) =>
      waiting.step.waitedFor.includes(step.flow) &&
      step.index < waiting.step.index &&
      (kind === 'write' || kind === 'lock') &&
      step.footprint.touches.some(({ object }) =>
        wanted.some((one) => overlap(one.object, object)),
      ),
  )
}

/** The last step of the same flow and transaction that took a lock before it had to wait. */
function heldBy({ moments }: History, waiting: Moment): Moment | undefined {
  return moments.findLast(
    ({ step, kind, transaction }) =>
      step.flow === waiting.step.flow &&
      step.index < waiting.step.index &&
      transaction === waiting.transaction &&
      (kind === 'write' || kind === 'lock'),
  )
}

function cutShort({ name, hit, commit }: Anomaly, { moments }: History): string {
  if (hit === undefined) return 'A flow was ended before it was done.'
  const what = hit.statement.verb === '' ? 'that' : hit.statement.verb
  if (name === 'lost answer') {
    return `The server did ${ref(hit)}, but the connection broke before ${hit.who} had the answer. ${hit.who} cannot know whether it happened; doing it again does it twice, giving up loses track of it.`
  }
  if (commit !== undefined) {
    const wrote = moments.findLast(
      ({ kind, transaction }) => kind === 'write' && transaction === commit.transaction,
    )
    const when =
      hit.kind === 'lost-answer' ? `after (${hit.number})` : `before its ${what} (${hit.number})`
    return `${hit.who} died ${when}. What it had committed at (${commit.number})${wrote === undefined ? '' : `, in ${tableOf(wrote)},`} stays, and what should have followed never happens.`
  }
  return `${hit.who} died before its ${what} (${hit.number}), with nothing committed in the database; what is wrong was done outside it, or by those who came after.`
}
