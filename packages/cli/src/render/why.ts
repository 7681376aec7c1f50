import { type Branch, lockBranches, type LockTree, type ObservedSession } from 'holdfast/observe'
import { seenText } from '../seen.ts'
import { cleanText } from '../terminal/clean-text.ts'
import { wrapText } from '../terminal/text-width.ts'
import { adviceLines, queryText } from './lock-tree.ts'
import type { Look } from './look.ts'
import { age, count, lockName, lockNames, sessionName, stateText } from './words.ts'

/** From a session to the root of what it waits for; alone if it waits for nobody. */
export function chainTo(tree: LockTree, pid: number): readonly ObservedSession[] {
  const walk = (branch: Branch): ObservedSession[] | undefined => {
    if (branch.session.pid === pid) return [branch.session]
    for (const child of branch.below) {
      const found = walk(child)
      if (found !== undefined) return [...found, branch.session]
    }
    return undefined
  }
  for (const branch of lockBranches(tree)) {
    const found = walk(branch)
    if (found !== undefined) return found
  }
  return tree.sessions.filter((session) => session.pid === pid)
}

/** The chain in sentences, with what can be done. */
export function renderWhy(tree: LockTree, chain: readonly ObservedSession[], look: Look): string[] {
  const { width, paint } = look
  const lines: string[] = []
  const say = (text: string, indent = ''): void => {
    for (const line of wrapText(text, width - indent.length)) lines.push(`${indent}${line}`)
  }
  chain.forEach((session, at) => {
    const blocker = chain[at + 1]
    lines.push(paint('bold', who(session)))
    for (const sentence of sentencesOf(session, blocker, tree)) say(sentence, '  ')
    const query = queryText(session)
    if (query !== '')
      for (const line of wrapText(query, width - 4).slice(0, 4))
        lines.push(paint('dim', `    ${line}`))
    for (const advice of session.advice) lines.push(...adviceLines(advice, '  ', width - 2, paint))
    lines.push('')
  })
  lines.push(...remedy(chain, say, lines))
  return lines
}

function who(session: ObservedSession): string {
  return session.pid === 0
    ? 'A prepared transaction'
    : `${sessionName(session)} (pid ${session.pid})`
}

function sentencesOf(
  session: ObservedSession,
  blocker: ObservedSession | undefined,
  tree: LockTree,
): string[] {
  const { waitsFor, waitingMs, transactionMs, holds, waiters, blockedBy, database } = session
  const sentences: string[] = []
  if (database !== undefined) sentences.push(`is connected to the database ${cleanText(database)}.`)
  if (waitsFor !== undefined) {
    const soft =
      blocker !== undefined &&
      blockedBy.some(({ pid, kind }) => pid === blocker.pid && kind === 'soft')
    const by =
      blocker === undefined
        ? ''
        : soft
          ? `, behind ${who(blocker)}, which is ahead in the queue`
          : `, which ${who(blocker)} holds`
    sentences.push(`has waited ${age(waitingMs ?? 0)} for ${lockName(waitsFor)}${by}.`)
    const others = blockedBy
      .filter(({ pid }) => pid !== blocker?.pid)
      .map(({ pid }) => nameOf(tree, pid))
    if (others.length > 0) sentences.push(`also waits for ${others.join(', ')}.`)
  } else if (blockedBy.length === 0) {
    const root =
      waiters > 0
        ? `: it is the root, and ${count(waiters, 'session')} wait${waiters === 1 ? 's' : ''} for it`
        : ''
    sentences.push(`waits for nobody${root}.`)
  }
  if (session.pid !== 0 && waitsFor === undefined) {
    const open =
      transactionMs === undefined ? '' : `, in a transaction that is ${age(transactionMs)} old`
    sentences.push(`is ${stateText(session)}${open}.`)
  }
  if (holds.length > 0) sentences.push(`holds ${lockNames(holds, 12)}.`)
  return sentences
}

function nameOf(tree: LockTree, pid: number): string {
  const session = tree.sessions.find((each) => each.pid === pid)
  return session === undefined ? `pid ${pid}` : who(session)
}

/** The command that would end it. A session that is idle runs nothing that could be cancelled. */
export function endCommand(session: ObservedSession): string {
  return cancelCommand(session, session.state.startsWith('idle'))
}

/** The command that ends a statement or a session, if it is still in the transaction that was seen. */
export function cancelCommand(session: ObservedSession, terminate: boolean): string {
  const seen = seenText(session)
  const meant = seen === undefined ? '' : ` --seen ${seen} --yes`
  return `holdfast cancel ${session.pid}${terminate ? ' --terminate' : ''}${meant}`
}

function remedy(
  chain: readonly ObservedSession[],
  say: (text: string, indent?: string) => void,
  lines: string[],
): string[] {
  const root = chain.at(-1)
  if (root === undefined || (chain.length === 1 && root.waiters === 0)) {
    while (lines.at(-1) === '') lines.pop()
    return []
  }
  if (root.pid === 0) {
    say('To end it: COMMIT PREPARED or ROLLBACK PREPARED, as its transaction manager decided.')
    return []
  }
  const how = root.state.startsWith('idle') ? 'end its session' : 'cancel its statement'
  say(`To ${how}, which rolls its transaction back:`)
  return [`  ${endCommand(root)}`]
}
