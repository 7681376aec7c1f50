import type { Footprint } from '../core/model.ts'
import { readStatements, type SqlToken, queryVerbs } from '../core/sql-tokens.ts'

/**
 * What the text of a statement tells by itself. It is used to make footprints finer, never to guess:
 * a text that is not understood is `unknown`, and then everything the session holds counts.
 */
export interface StatementShape {
  readonly kind:
    | 'begin'
    | 'commit'
    | 'rollback'
    | 'rollback-to'
    /** Concerns the session alone: SET, SAVEPOINT, SHOW, … */
    | 'local'
    /** SELECT, INSERT, UPDATE, DELETE, MERGE, VALUES, TABLE, WITH. */
    | 'query'
    /** LOCK TABLE, TRUNCATE: the locks say it all. */
    | 'lock'
    /** DDL and everything else. */
    | 'unknown'
  readonly verb: string
  /** Every identifier that occurs, keywords included. */
  readonly names: ReadonlySet<string>
  /** Names directly before a parenthesis. */
  readonly calls: ReadonlySet<string>
  /** The table that INSERT, UPDATE, DELETE or MERGE writes. */
  readonly target: string | undefined
  /** Columns that an INSERT lists. */
  readonly columns: readonly string[] | undefined
  /** Columns that an UPDATE or ON CONFLICT sets. */
  readonly assigned: ReadonlySet<string>
  /** FOR UPDATE, FOR SHARE and their kin. */
  readonly lockingRead: boolean
  /** SKIP LOCKED, NOWAIT, pg_try_advisory_lock. */
  readonly attempt: boolean
  /** More than one of INSERT, UPDATE, DELETE, MERGE. */
  readonly writesSeveral: boolean
  readonly isolation: Footprint['isolation'] | undefined
  /** What it may leave in the session for the next run to find. */
  readonly residue: 'locks' | 'settings' | undefined
}

const local = new Set([
  'set',
  'reset',
  'show',
  'savepoint',
  'release',
  'deallocate',
  'prepare',
  'listen',
  'unlisten',
  'discard',
  'close',
])
const writers = new Set(['insert', 'update', 'delete', 'merge'])

const shapes = new Map<string, StatementShape>()

/** The shape of a text of one statement; of several, `unknown`. */
export function shapeOf(text: string): StatementShape {
  let shape = shapes.get(text)
  if (!shape) {
    const statements = readStatements(text)
    const [only] = statements
    shape = only && statements.length === 1 ? read(only.tokens) : read([])
    if (shapes.size > 2000) shapes.clear()
    shapes.set(text, shape)
  }
  return shape
}

function read(tokens: readonly SqlToken[]): StatementShape {
  const words = tokens.map((token) => (token.kind === 'word' ? token.text : ''))
  const verb = words.find((_, index) => tokens[index]?.text !== '(') ?? ''
  const identifiers = tokens.filter(({ kind }) => kind === 'word' || kind === 'name')
  const names = new Set(identifiers.map(({ text }) => text))
  const calls = new Set(
    tokens.flatMap((token, index) =>
      tokens[index + 1]?.text === '(' && (token.kind === 'word' || token.kind === 'name')
        ? [token.text]
        : [],
    ),
  )
  const lockingRead = words.some(
    (word, index) => word === 'for' && /^(update|share|no|key)$/.test(words[index + 1] ?? ''),
  )
  return {
    kind: kindOf(verb, words),
    verb,
    names,
    calls,
    target: targetOf(tokens),
    columns: columnsOf(tokens),
    assigned: assignedIn(tokens),
    lockingRead,
    attempt:
      names.has('nowait') ||
      (names.has('skip') && names.has('locked')) ||
      [...calls].some((call) => call.startsWith('pg_try_advisory')),
    writesSeveral: writesIn(words) > 1,
    isolation: isolationIn(verb, words),
    residue: residueOf(verb, words, calls) ?? (setsForSession(tokens) ? 'settings' : undefined),
  }
}

function kindOf(verb: string, words: readonly string[]): StatementShape['kind'] {
  if (words.includes('prepared') && verb !== 'select') return 'unknown'
  if (verb === 'begin' || verb === 'start') return 'begin'
  if (verb === 'commit' || verb === 'end') return 'commit'
  if (verb === 'rollback' || verb === 'abort') {
    return words.includes('to') ? 'rollback-to' : 'rollback'
  }
  if (verb === 'prepare' && words[1] === 'transaction') return 'unknown'
  if (local.has(verb)) return 'local'
  if (verb === 'lock' || verb === 'truncate') return 'lock'
  return queryVerbs.has(verb) ? 'query' : 'unknown'
}

/** DML verbs that begin a statement or a part of a WITH; `FOR UPDATE` and `DO UPDATE` do not count. */
function writesIn(words: readonly string[]): number {
  return words.filter(
    (word, index) =>
      writers.has(word) && !/^(for|do|on|key)$/.test(words[index - 1] ?? '') && word !== '',
  ).length
}

function targetOf(tokens: readonly SqlToken[]): string | undefined {
  const at = tokens.findIndex(({ kind, text }) => kind === 'word' && writers.has(text))
  if (at === -1 || writesIn(tokens.map(({ text }) => text)) > 1) return undefined
  let next = at + 1
  while (/^(into|from|only)$/.test(tokens[next]?.text ?? '')) next += 1
  // A schema before it.
  if (tokens[next + 1]?.text === '.') next += 2
  return tokens[next]?.text
}

function columnsOf(tokens: readonly SqlToken[]): string[] | undefined {
  const at = tokens.findIndex(({ kind, text }) => kind === 'word' && text === 'into')
  if (at === -1) return undefined
  const open = at + (tokens[at + 2]?.text === '.' ? 4 : 2)
  if (tokens[open]?.text !== '(') return undefined
  const columns: string[] = []
  for (let index = open + 1; index < tokens.length; index += 1) {
    const token = tokens[index]
    if (!token || token.text === ')') return columns
    if (token.text === ',') continue
    // A sub-select and not a list of columns.
    if (token.kind !== 'word' && token.kind !== 'name') return undefined
    if (token.kind === 'word' && queryVerbs.has(token.text)) return undefined
    columns.push(token.text)
  }
  return undefined
}

/** Names before an equals sign after SET, up to the end of the list. */
function assignedIn(tokens: readonly SqlToken[]): ReadonlySet<string> {
  const assigned = new Set<string>()
  let inside = false
  tokens.forEach((token, index) => {
    if (token.kind === 'word' && token.text === 'set') inside = true
    if (token.kind === 'word' && /^(where|from|returning)$/.test(token.text)) inside = false
    if (!inside) return
    const next = tokens[index + 1]?.text
    // `SET (a, b) = …` names them in parentheses.
    if (next === '=' || next === ',' || next === ')') assigned.add(token.text)
  })
  return assigned
}

function isolationIn(verb: string, words: readonly string[]): Footprint['isolation'] | undefined {
  const at = words.indexOf('isolation')
  const level = at === -1 ? words : words.slice(at)
  if (at === -1 && !(verb === 'set' && words.includes('default_transaction_isolation'))) {
    return undefined
  }
  if (level.includes('serializable')) return 'serializable'
  if (level.includes('repeatable')) return 'repeatable read'
  return level.includes('committed') || level.includes('uncommitted') ? 'read committed' : undefined
}

function residueOf(
  verb: string,
  words: readonly string[],
  calls: ReadonlySet<string>,
): StatementShape['residue'] {
  if ([...calls].some((call) => /^pg(_try)?_advisory_lock(_shared)?$/.test(call))) return 'locks'
  if (verb === 'set') {
    return words[1] === 'local' || words[1] === 'transaction' ? undefined : 'settings'
  }
  const temporary = words.includes('temp') || words.includes('temporary')
  if (temporary && (verb === 'create' || verb === 'select')) return 'settings'
  return verb === 'listen' || verb === 'prepare' ? 'settings' : undefined
}

/** A `set_config` whose last argument is not plainly `true` may outlive the transaction. */
function setsForSession(tokens: readonly SqlToken[]): boolean {
  return tokens.some(({ text }, index) => {
    if (text !== 'set_config' || tokens[index + 1]?.text !== '(') return false
    let depth = 0
    let last: string[] = []
    for (const token of tokens.slice(index + 1)) {
      if (token.text === '(') depth += 1
      if (token.text === ')') depth -= 1
      if (depth === 0) break
      if (depth === 1 && token.text === ',') last = []
      else last.push(token.text)
    }
    return last.join(' ') !== 'true'
  })
}
