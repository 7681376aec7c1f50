import {
  type Advice,
  type Branch,
  lockBranches,
  type LockTree,
  type ObservedSession,
} from 'holdfast/observe'
import { cleanText } from '../terminal/clean-text.ts'
import type { Paint } from '../terminal/paint.ts'
import { cutText, textWidth, wrapText } from '../terminal/text-width.ts'
import type { Look } from './look.ts'
import { age, count, lockName, lockNames, sessionName, stateText } from './words.ts'

const mostNames = 4
const mostHolders = 20

/** Who blocks whom, root first, as lines of at most the given width. */
export function renderLocks(tree: LockTree, look: Look): string[] {
  const branches = lockBranches(tree)
  const lines = [headline(tree, look), '']
  for (const branch of branches) lines.push(...renderBranch(branch, '', undefined, look), '')
  const holders = tree.sessions.filter(
    ({ waitsFor, waiters }) => waitsFor === undefined && waiters === 0,
  )
  if (holders.length > 0) lines.push(...renderHolders(holders, look), '')
  if (tree.capped)
    lines.push('There are more locks than were read; what is waited for was read first.', '')
  return lines.slice(0, -1)
}

/** `11 sessions wait, for up to 4.2 s; 1 is at the root of it.` */
export function headline(tree: LockTree, { width, paint }: Look): string {
  const waiting = tree.sessions.filter(({ waitsFor }) => waitsFor !== undefined)
  if (waiting.length === 0) return paint('green', cutText('Nobody waits for a lock.', width))
  const longest = Math.max(...waiting.map(({ waitingMs }) => waitingMs ?? 0))
  const roots =
    tree.roots.length === 1
      ? '1 is at the root of it'
      : `${tree.roots.length} are at the root of it`
  const text = `${count(waiting.length, 'session')} ${waiting.length === 1 ? 'waits' : 'wait'}, for up to ${age(longest)}; ${roots}.`
  return paint(['bold', 'red'], cutText(text, width))
}

function renderBranch(
  branch: Branch,
  indent: string,
  isLast: boolean | undefined,
  look: Look,
): string[] {
  const { session, below } = branch
  const { width, paint } = look
  const isRoot = isLast === undefined
  const first = isRoot ? '' : isLast ? '└─ ' : '├─ '
  const after = isRoot ? '' : isLast ? '   ' : '│  '
  const trunk = `${indent}${after}${below.length > 0 ? '│  ' : '   '}`
  const room = Math.max(20, width - trunk.length)
  const [line = '', ...more] = sessionLines(branch, width - indent.length - first.length, look)
  const lines = [`${paint('dim', indent + first)}${line}`]
  for (const each of more) lines.push(`${paint('dim', trunk)}${each}`)
  const query = queryText(session)
  if (query !== '') lines.push(paint('dim', `${trunk}${cutText(query, room)}`))
  // What is said of the root is what ends it; of those below only what is their own fault.
  const advice = isRoot
    ? session.advice
    : session.advice.filter(({ code }) => code !== 'long-transaction')
  for (const each of advice) lines.push(...adviceLines(each, trunk, room, paint))
  below.forEach((child, at) => {
    lines.push(...renderBranch(child, `${indent}${after}`, at === below.length - 1, look))
  })
  return lines
}

/** Name, pid and what it does; what it holds is below that, unless there is room behind it. */
function sessionLines({ session, also }: Branch, width: number, { paint }: Look): string[] {
  const pid = session.pid === 0 ? '' : ` ${session.pid}`
  const name = cutText(sessionName(session), Math.max(8, width - pid.length))
  const room = Math.max(0, width - textWidth(name) - pid.length - 2)
  const isWaiting = session.waitsFor !== undefined
  const style = isWaiting ? 'yellow' : 'red'
  const facts = isWaiting ? waiterFacts(session, also) : rootFacts(session)
  const holds = holdsText(session, isWaiting)
  const all = [facts, holds].filter((text) => text !== '').join(' · ')
  const isOne = textWidth(all) <= room
  const shown = cutText(isOne ? all : facts, room)
  const first = `${paint('bold', name)}${paint('cyan', pid)}${shown === '' ? '' : `  ${paint(style, shown)}`}`
  if (isOne || holds === '') return [first]
  return [first, paint(style, cutText(holds, Math.max(20, width - 3)))]
}

function rootFacts(session: ObservedSession): string {
  const { transactionMs, waiters } = session
  return [
    waiters > 0 ? `blocks ${waiters}` : '',
    session.pid === 0 ? '' : stateText(session),
    transactionMs === undefined ? '' : `transaction ${age(transactionMs)}`,
  ]
    .filter((fact) => fact !== '')
    .join(' · ')
}

/** Of one who waits only what has a name of its own: the rest is PostgreSQL's. */
function holdsText({ holds }: ObservedSession, isWaiting: boolean): string {
  const told = isWaiting
    ? holds.filter(({ kind }) => kind === 'named' || kind === 'advisory')
    : holds
  return told.length === 0 ? '' : `holds ${lockNames(told, mostNames)}`
}

function waiterFacts(session: ObservedSession, also: Branch['also']): string {
  const { waitsFor, waitingMs, blockedBy, waiters } = session
  const wanted = waitsFor === undefined ? '' : ` for ${lockName(waitsFor)}`
  const queued = blockedBy.every(({ kind }) => kind === 'soft') ? ', in the queue' : ''
  return [
    `waits ${age(waitingMs ?? 0)}${wanted}${queued}`,
    waiters > 0 ? `blocks ${waiters}` : '',
    also.length > 0 ? `also behind ${also.map(({ pid }) => pid).join(', ')}` : '',
  ]
    .filter((fact) => fact !== '')
    .join(' · ')
}

/** The statement by which Holdfast takes a lock says nothing that the name of the lock does not. */
const ownStatement = /'holdfast\.held'|\bholdfast_lock\b/

/** The statement on one line; of an idle session the one before. */
export function queryText({ query, state }: ObservedSession): string {
  if (ownStatement.test(query)) return ''
  const text = cleanText(query).replaceAll(/ {2,}/g, ' ').trim()
  return text === '' || !state.startsWith('idle') ? text : `last: ${text}`
}

export function adviceLines(
  { what, fix }: Advice,
  indent: string,
  room: number,
  paint: Paint,
): string[] {
  const [first = '', ...rest] = wrapText(cleanText(what), room - 2)
  return [
    `${paint('dim', indent)}${paint('magenta', `! ${first}`)}`,
    ...rest.map((line) => `${paint('dim', indent)}${paint('magenta', `  ${line}`)}`),
    ...wrapText(cleanText(fix), room - 4).map(
      (line, at) => `${paint('dim', indent)}${at === 0 ? '  → ' : '    '}${line}`,
    ),
  ]
}

function renderHolders(holders: readonly ObservedSession[], look: Look): string[] {
  const shown = holders.slice(0, mostHolders)
  const more = holders.length - shown.length
  return [
    'Holding locks that nobody waits for:',
    ...shown.flatMap((session) => {
      const branch = { session, also: [], below: [] }
      return sessionLines(branch, look.width - 4, look).map((line, at) =>
        at === 0 ? `  ${line}` : `    ${line}`,
      )
    }),
    ...(more > 0 ? [`  and ${more} more`] : []),
  ]
}
