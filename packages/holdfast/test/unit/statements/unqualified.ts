import { parsePlPgSQLSync, parseSync, scanSync } from 'libpg-query'
import { callersTable, schema } from './caller-statements.ts'

/**
 * Reads SQL with PostgreSQL's own parser and finds every name that the server would look for along the search_path, or
 * read by a setting of the session: somebody else may have put their own there.
 */

type Node = Readonly<Record<string, unknown>>

/** What the grammar itself spells as a type of pg_catalog, in every version that we support. */
const grammarTypes =
  /^(?:bigint|bit|boolean|char|character|dec|decimal|double|float|int|integer|interval|nchar|national|numeric|real|smallint|time|timestamp|varchar)\b/i

/** Operators that have no way to be written with a schema, by what PostgreSQL makes of them. */
const sugar: Readonly<Record<string, string>> = {
  AEXPR_DISTINCT: 'IS DISTINCT FROM',
  AEXPR_NOT_DISTINCT: 'IS NOT DISTINCT FROM',
  AEXPR_NULLIF: 'nullif',
  AEXPR_IN: 'IN (…)',
  AEXPR_LIKE: 'LIKE',
  AEXPR_ILIKE: 'ILIKE',
  AEXPR_SIMILAR: 'SIMILAR TO',
  AEXPR_BETWEEN: 'BETWEEN',
  AEXPR_NOT_BETWEEN: 'NOT BETWEEN',
  AEXPR_BETWEEN_SYM: 'BETWEEN SYMMETRIC',
  AEXPR_NOT_BETWEEN_SYM: 'NOT BETWEEN SYMMETRIC',
}

/** What in a text depends on search_path or settings; empty if it means the same everywhere. */
export function unqualified(text: string): string[] {
  const parsed = parseSync(text) as unknown as Node
  // The parser counts bytes.
  const bytes = Buffer.from(text)
  const findings = literalsIn(text)
  const local = new Set<string>([callersTable])
  walk(parsed, (kind, node) => {
    if (kind === 'CommonTableExpr') local.add(String(node['ctename']))
  })
  walk(parsed, (kind, node) => {
    const found = findingOf(kind, node, local, bytes)
    if (found !== undefined) findings.push(found)
    if (kind === 'DoStmt') findings.push(...literalsIn(bodyOf(node)), ...proceduresIn(text))
  })
  return findings
}

/**
 * The same of a statement in a file that is installed: what it creates is found while search_path is ours, see
 * `setForFiles`. A function that sets search_path for itself is as safe; any other runs with whatever its caller has.
 */
export function unpinned(text: string): string[] {
  const findings = literalsIn(text)
  walk(parseSync(text), (kind, node) => {
    if (kind !== 'CreateFunctionStmt') return
    const body = bodyOf(node)
    findings.push(...literalsIn(body))
    if (isPinned(node)) return
    const isSql = optionOf(node, 'language') === 'sql'
    findings.push(...(isSql ? unqualified(body) : proceduresIn(text)))
  })
  return findings
}

/** What PL/pgSQL has the server parse: expressions, assignments, statements, and types of variables. */
function proceduresIn(text: string): string[] {
  const findings: string[] = []
  walk(parsePlPgSQLSync(text), (kind, node) => {
    // What an EXCEPTION clause declares has a line as well, and types that PL/pgSQL knows itself.
    const isImplicit = ['sqlstate', 'sqlerrm'].includes(String(node['refname']))
    if (kind === 'PLpgSQL_var' && node['lineno'] !== undefined && !isImplicit) {
      const { PLpgSQL_type: type } = node['datatype'] as Node
      findings.push(...unqualified(`SELECT NULL::${String((type as Node)['typname'])}`))
    }
    if (kind !== 'PLpgSQL_expr') return
    const query = String(node['query'])
    findings.push(
      ...unqualified(node['parseMode'] === 0 ? query : `SELECT ${query.replace(/^[^']*?:=/, '')}`),
    )
  })
  return findings
}

/** Our schema, and last what belongs to the session: PostgreSQL would look there first. */
function isPinned(node: Node): boolean {
  return optionsOf(node, 'set')
    .map((arg) => arg['VariableSetStmt'] as Node)
    .some(({ name, args }) => {
      const path = ((args ?? []) as Node[]).map((arg) => textIn(arg['A_Const']))
      return name === 'search_path' && path.join() === `${schema},pg_temp`
    })
}

function bodyOf(node: Node): string {
  const [as] = optionsOf(node, 'as')
  const { items } = (as?.['List'] ?? { items: [as] }) as { readonly items: readonly Node[] }
  return textIn(items[0]?.['String'])
}

function optionOf(node: Node, name: string): string {
  return textIn(optionsOf(node, name)[0]?.['String'])
}

function optionsOf(node: Node, name: string): Node[] {
  return ((node['options'] ?? node['args'] ?? []) as Node[])
    .map((option) => option['DefElem'] as Node)
    .filter(({ defname }) => defname === name)
    .map(({ arg }) => arg as Node)
}

/** Of a String, or of a constant that holds one. */
function textIn(node: unknown): string {
  const { sval } = (node ?? {}) as { readonly sval?: string | { readonly sval: string } }
  return typeof sval === 'object' ? sval.sval : (sval ?? '')
}

function findingOf(
  kind: string,
  node: Node,
  local: ReadonlySet<string>,
  bytes: Buffer,
): string | undefined {
  switch (kind) {
    case 'A_Expr': {
      const written = sugar[String(node['kind'])]
      if (written !== undefined) return `${written}: its operator cannot be qualified`
      return alone(node['name'], 'operator')
    }
    case 'SubLink':
      if (node['testexpr'] === undefined) return undefined
      return node['operName'] === undefined
        ? 'IN (SELECT …): its operator cannot be qualified'
        : alone(node['operName'], 'operator')
    case 'CaseExpr':
      return node['arg'] === undefined ? undefined : 'CASE x WHEN y: its operator is not qualified'
    case 'FuncCall':
      return alone(node['funcname'], 'function')
    case 'ObjectWithArgs':
      return alone(node['objname'], 'function')
    case 'CollateClause':
      return alone(node['collname'], 'collation')
    case 'SortBy':
      return node['useOp'] === undefined ? undefined : alone(node['useOp'], 'operator')
    case 'JoinExpr':
      return node['usingClause'] === undefined && node['isNatural'] !== true
        ? undefined
        : 'JOIN … USING: its operators cannot be qualified'
    // What is written to stands under its own name.
    case 'relation':
    case 'RangeVar':
      return node['schemaname'] === undefined && !local.has(String(node['relname']))
        ? `table ${String(node['relname'])}`
        : undefined
    case 'typeName':
    case 'TypeName':
      return typeFinding(node, bytes)
    default:
      return kind.startsWith('Json') ? `${kind}: not a function on all versions` : undefined
  }
}

function typeFinding(node: Node, bytes: Buffer): string | undefined {
  const parts = namesOf(node['names'])
  if (parts.length === 0) return undefined
  const location = Number(node['location'] ?? 0)
  const written = location < 0 ? '' : bytes.subarray(location, location + 40).toString()
  if (parts.length > 1 && /^"?pg_catalog"?\./.test(written)) return undefined
  // Newer parsers know more of them than the servers we run on.
  if (parts[0] === 'pg_catalog') return grammarTypes.test(written) ? undefined : `type ${parts[1]}`
  return parts.length > 1 || parts[0] === callersTable ? undefined : `type ${parts[0]}`
}

function alone(names: unknown, kind: string): string | undefined {
  const parts = namesOf(names)
  return parts.length > 1 ? undefined : `${kind} ${parts[0]}`
}

function namesOf(list: unknown): string[] {
  return ((list ?? []) as Node[]).map((each) =>
    String((each['String'] as Node | undefined)?.['sval']),
  )
}

/** A backslash means one thing or another by standard_conforming_strings, unless the text says E. */
function literalsIn(text: string): string[] {
  if (!text.includes('\\')) return []
  return scanSync(text)
    .tokens.filter(({ tokenName, text: token }) => tokenName === 'SCONST' && /^'.*\\/s.test(token))
    .map(({ text: token }) => `backslash in ${token}`)
}

function walk(value: unknown, visit: (kind: string, node: Node) => void): void {
  if (Array.isArray(value)) {
    for (const each of value) walk(each, visit)
    return
  }
  if (typeof value !== 'object' || value === null) return
  for (const [kind, inner] of Object.entries(value)) {
    // FOR UPDATE OF names a table of the statement.
    if (kind === 'lockedRels') continue
    if (typeof inner === 'object' && inner !== null && !Array.isArray(inner)) {
      visit(kind, inner as Node)
    }
    walk(inner, visit)
  }
}
