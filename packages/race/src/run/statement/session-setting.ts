/** What a statement sets for its transaction or its session, and what stays behind. */
import type { Footprint } from '../../core/model.ts'
import {
  listOf,
  nodeOf,
  type ParsedStatement,
  stringsOf,
  textOf,
  type Tree,
  walk,
} from './statement-tree.ts'

/** What a statement says about its transaction or its session. */
export interface Setting {
  readonly isolation: Footprint['isolation'] | undefined
  /** The level is for all transactions to come. */
  readonly forSession: boolean
  /** The level of the session is the server's again: RESET, DISCARD ALL. */
  readonly resetsIsolation: boolean
  /** What it may leave in the session for the next run to find. */
  readonly residue: 'locks' | 'settings' | undefined
}

export function settingOf(statement: ParsedStatement, calls: ReadonlySet<string>): Setting {
  const { kind, tree } = statement
  return {
    isolation: isolationOf(statement),
    forSession:
      kind === 'VariableSetStmt' &&
      (tree['name'] === 'SESSION CHARACTERISTICS' || tree['name'] === standing),
    resetsIsolation: resets(statement),
    residue: residueOf(statement, calls),
  }
}

const standing = 'default_transaction_isolation'

/** Asks a session for the level of its transactions, whatever it has it from: options, the role, the database. */
export const levelQuestion: string = `SHOW ${standing}`

function resets({ kind, tree }: ParsedStatement): boolean {
  if (kind === 'DiscardStmt') return textOf(tree, 'target') === 'DISCARD_ALL'
  if (kind !== 'VariableSetStmt') return false
  const how = textOf(tree, 'kind')
  if (how === 'VAR_RESET_ALL') return true
  return (how === 'VAR_RESET' || how === 'VAR_SET_DEFAULT') && tree['name'] === standing
}

function isolationOf({ kind, tree }: ParsedStatement): Footprint['isolation'] | undefined {
  if (kind === 'TransactionStmt') return levelOf(optionOf(tree['options']))
  if (kind !== 'VariableSetStmt') return undefined
  // What new transactions begin with is of no account to the one in which it is set.
  if (tree['is_local'] === true && tree['name'] === standing) return undefined
  const single = /^(default_)?transaction_isolation$/.test(textOf(tree, 'name'))
  return levelOf(single ? listOf(tree['args'])[0] : optionOf(tree['args']))
}

function optionOf(options: unknown): unknown {
  return listOf(options)
    .map((option) => nodeOf(option, 'DefElem'))
    .find((option) => option?.['defname'] === 'transaction_isolation')?.['arg']
}

function levelOf(value: unknown): Footprint['isolation'] | undefined {
  const level = nodeOf(nodeOf(value, 'A_Const'), 'sval')?.['sval']
  return typeof level === 'string' ? levelNamed(level) : undefined
}

/** The level behind a name: PostgreSQL treats READ UNCOMMITTED as READ COMMITTED. */
export function levelNamed(name: string): Footprint['isolation'] {
  const level = name.toLowerCase()
  return level === 'serializable' || level === 'repeatable read' ? level : 'read committed'
}

function residueOf(
  { kind, tree }: ParsedStatement,
  calls: ReadonlySet<string>,
): Setting['residue'] {
  if ([...calls].some((call) => /^pg(_try)?_advisory_lock(_shared)?$/.test(call))) return 'locks'
  if (kind === 'VariableSetStmt') {
    const lasts = tree['is_local'] !== true && tree['name'] !== 'TRANSACTION'
    return lasts && !textOf(tree, 'kind').startsWith('VAR_RESET') ? 'settings' : undefined
  }
  if (kind === 'ListenStmt' || kind === 'PrepareStmt' || calls.has('setseed')) return 'settings'
  return makesTemporary(tree) || (calls.has('set_config') && setsForSession(tree))
    ? 'settings'
    : undefined
}

function makesTemporary(tree: Tree): boolean {
  let found = false
  walk(tree, (_, node) => {
    if (node['relpersistence'] === 't') found = true
  })
  return found
}

/** A `set_config` whose last argument is not plainly `true` may outlive the transaction. */
function setsForSession(tree: Tree): boolean {
  let lasting = false
  walk(tree, (name, node) => {
    if (name !== 'FuncCall' || stringsOf(node['funcname']).at(-1) !== 'set_config') return
    const local = nodeOf(nodeOf(listOf(node['args'])[2], 'A_Const'), 'boolval')
    if (local?.['boolval'] !== true) lasting = true
  })
  return lasting
}
