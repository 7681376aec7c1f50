/** PostgreSQL's own parser (`libpg-query`), and the little that is needed to look around in its trees. */
import { loadModule, parsePlPgSQLSync, parseSync } from 'libpg-query'

/** A node without its name: `{ relname: 't', inh: true }`. What is zero, false or empty is left out. */
export type Tree = Readonly<Record<string, unknown>>

export interface ParsedStatement {
  /** `SelectStmt`, `TransactionStmt`, … */
  readonly kind: string
  readonly tree: Tree
}

/** Has to be awaited once before `parseStatement`: the parser is WebAssembly. */
export async function loadParser(): Promise<void> {
  await loadModule()
}

/** The only statement of a text; `nothing` for comments alone; undefined if it is not understood. */
export function parseStatement(text: string): ParsedStatement | 'nothing' | undefined {
  if (text.trim() === '') return 'nothing'
  try {
    const { stmts = [] } = parseSync(text)
    if (stmts.length === 0) return 'nothing'
    const [entry, more] = Object.entries(stmts[0]?.stmt ?? {})
    if (stmts.length > 1 || !entry || more) return undefined
    return { kind: entry[0], tree: entry[1] as Tree }
  } catch {
    return undefined
  }
}

/** A CREATE FUNCTION or a DO of PL/pgSQL, with what it runs; undefined if it is not understood. */
export function parsePlPgSql(text: string): unknown {
  try {
    return parsePlPgSQLSync(text)
  } catch {
    return undefined
  }
}

/**
 * Calls `visit` for every node below, with its name, or with the name of the field that holds it:
 * the parser leaves the name out where only one kind of node can be.
 */
export function walk(tree: unknown, visit: (name: string, node: Tree) => void): void {
  if (Array.isArray(tree)) {
    for (const item of tree) walk(item, visit)
    return
  }
  if (!isTree(tree)) return
  for (const [name, value] of Object.entries(tree)) {
    // FOR UPDATE OF names aliases, and no tables.
    if (name === 'lockedRels') continue
    if (isTree(value)) visit(name, value)
    walk(value, visit)
  }
}

/** The node of one name inside of `{ A_Const: … }`. */
export function nodeOf(tree: unknown, name: string): Tree | undefined {
  const node = isTree(tree) ? tree[name] : undefined
  return isTree(node) ? node : undefined
}

export function listOf(tree: unknown): readonly unknown[] {
  return Array.isArray(tree) ? tree : []
}

/** The strings of a list of names: `['pg_catalog', 'int4']`. */
export function stringsOf(list: unknown): string[] {
  return listOf(list).map((item) => textOf(nodeOf(item, 'String'), 'sval'))
}

/** A field that is a string; empty if it is left out. */
export function textOf(tree: Tree | undefined, field: string): string {
  const value = tree?.[field]
  return typeof value === 'string' ? value : ''
}

export function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
