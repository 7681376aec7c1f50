import type { LockTree, ObservedSession } from 'holdfast/observe'
import { mode, moment, plural, length } from '../../format.ts'
import type { Branch } from '../../graph/blocking-forest.ts'
import { stateOf } from '../../graph/session-state.ts'

/** Of a long queue the first ones say it all. */
const mostListed = 20

/** An incident for a chat, an issue or a post-mortem: what the page shows at one moment, and nothing that it hides. */
export function incidentMarkdown(
  tree: LockTree,
  forest: readonly Branch[],
  database: string,
): string {
  const waiting = tree.sessions.filter(({ waitsFor }) => waitsFor !== undefined).length
  const roots = forest.map(({ session }) => session)
  return [
    `### ${plural(waiting, 'session waits', 'sessions wait')} for locks in ${code(database)}`,
    `Seen at ${moment(tree.at)} (${tree.at}).`,
    listOf(forest, '').join('\n'),
    ...roots.flatMap(adviceOf),
    ...roots.flatMap(statementOf),
  ].join('\n\n')
}

function listOf(branches: readonly Branch[], indent: string): string[] {
  const lines = branches
    .slice(0, mostListed)
    .flatMap((branch) => [
      `${indent}- ${nameOf(branch.session)}: ${factsOf(branch)}`,
      ...branch.groups.flatMap((group) => listOf(group.branches, `${indent}  `)),
    ])
  const rest = branches.length - mostListed
  return rest > 0 ? [...lines, `${indent}- and ${rest} more`] : lines
}

function nameOf({ pid, application, user }: ObservedSession): string {
  return pid === 0 ? 'a prepared transaction' : `${code(application || user)}, pid ${pid}`
}

function factsOf({ session, kind }: Branch): string {
  const { waitsFor, waitingMs = 0, transactionMs, waiters, hidden, stateMs } = session
  const lock = waitsFor && [code(waitsFor.name), `(${mode(waitsFor.mode)}`, waitsFor.row]
  const facts = [
    lock
      ? `waits ${length(waitingMs)} for ${lock.filter(Boolean).join(' ')})${kind === 'soft' ? ', queued behind it' : ''}`
      : `${stateOf(session).word}${hidden ? '' : ` for ${length(stateMs)}`}`,
    transactionMs === undefined ? '' : `transaction open for ${length(transactionMs)}`,
    waiters === 0 ? '' : `blocks ${plural(waiters, 'session')}`,
  ]
  return facts.filter((fact) => fact !== '').join(', ')
}

function adviceOf(session: ObservedSession): string[] {
  return session.advice.map(
    ({ what, fix }) => `**Do** (${nameOf(session)}): ${plain(what)} ${plain(fix)}`,
  )
}

function statementOf(session: ObservedSession): string[] {
  if (session.query === '') return []
  const fence = '`'.repeat(Math.max(3, longestRun(session.query) + 1))
  return [`Last statement of ${nameOf(session)}:\n\n${fence}sql\n${session.query}\n${fence}`]
}

/** Names come from anywhere: between backticks they are text. */
function code(text: string): string {
  const fence = '`'.repeat(longestRun(text) + 1)
  const edge = /^`|`$/.test(text) ? ' ' : ''
  return `${fence}${edge}${text.replaceAll(/\s+/g, ' ')}${edge}${fence}`
}

function plain(text: string): string {
  return text.replaceAll(/[\\`*_[\]<>]/g, '\\$&')
}

function longestRun(text: string): number {
  return Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length))
}
