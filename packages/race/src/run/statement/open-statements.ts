/** Statements that are no queries, or more than that: how much of what they do is told by their locks. */
import type { Catalogue } from '../catalogue/catalogue.ts'
import type { StatementShape } from './statement-shape.ts'

/** Messages between sessions: who hears of what when depends on everything. */
export function tellsOthers({ verb, calls }: StatementShape): boolean {
  return ['listen', 'unlisten', 'notify'].includes(verb) || calls.has('pg_notify')
}

/** Not queries, but what they lock is all they do. */
export const observable: ReadonlySet<string> = new Set([
  'call',
  'do',
  'execute',
  'prepare',
  'copy from',
  'copy to',
  'explain',
  'fetch',
  'move',
  'declare',
])

/** What they do they do at one moment, when they commit, or when they read, unless they run code. */
export const atOnce: ReadonlySet<string> = new Set([
  'prepared',
  'prepare',
  'chain',
  'copy to',
  'select',
  'show',
  'listen',
  'unlisten',
  'notify',
])

/** They run what was put off until the COMMIT. */
export const runsLate: ReadonlySet<string> = new Set(['prepared', 'chain', 'set constraints'])

/** Procedures and blocks may commit in between, and then their locks do not tell what they did. */
export function mayCommit(
  { verb }: StatementShape,
  text: string,
  { routines }: Catalogue,
): boolean {
  if (verb === 'do' && commits.test(text)) return true
  if (verb !== 'do' && verb !== 'call') return false
  // Only SQL cannot, of what is not to be read.
  return [...routines.values()]
    .flat()
    .some(({ body, language }) => (body === null ? language !== 'sql' : commits.test(body)))
}

const commits = /\b(?:commit|rollback)\b/i
