import { quoted } from './sql-name.ts'
import { type Clause, readStatement, type Statement, valueOf } from './statement.ts'
import type { Token } from './tokens.ts'

/**
 * A statement on one line of at most `width` characters. Verb, table, WHERE, key values and lock
 * clause stay as long as they can; select lists, RETURNING and column lists go first.
 */
export function shorten(
  sql: string,
  parameters: readonly (string | null)[],
  width: number,
): string {
  const statement = readStatement(sql, parameters)
  const shown = statement.clauses.map((clause) => ({ clause, text: textOf(clause, statement) }))
  const line = (): string =>
    shown
      .map(({ text }) => text)
      .filter((text) => text !== '')
      .join(' ')
  for (const lessen of lessenings) {
    if (line().length <= width) break
    for (const part of shown) {
      const shorter = lessen(part.clause, statement, part.text)
      if (shorter !== undefined && shorter.length < part.text.length) part.text = shorter
      if (line().length <= width) break
    }
  }
  return cut(line(), width)
}

/** The whole statement on one line, values in place of `$1`. */
export function flatten(sql: string, parameters: readonly (string | null)[]): string {
  const statement = readStatement(sql, parameters)
  return statement.clauses
    .map((clause) => textOf(clause, statement))
    .filter((text) => text !== '')
    .join(' ')
}

/**
 * What follows a keyword of the outermost level: of `WHERE`, `id = 1`. Undefined if there is no such clause. It may be
 * copied, so names keep the quotes that they need.
 */
export function clauseText(statement: Statement, name: string): string | undefined {
  const clause = statement.clauses.find((one) => one.name === name)
  return clause && textOf(clause, statement, quoted).slice(name.length + 1)
}

type Lessen = (clause: Clause, statement: Statement, text: string) => string | undefined

/** From what a reader misses least to what he misses most. */
const lessenings: readonly Lessen[] = [
  ({ name }) => (name === 'RETURNING' ? '' : undefined),
  ({ name, tokens }, statement, text) =>
    name === 'SELECT' && isFromTable(statement) && !statement.aggregate && commas(tokens) > 0
      ? `SELECT ${text.slice(7).split(',')[0]}, …`
      : undefined,
  ({ name, tokens }) => (name === 'WITH' ? `WITH ${tokens[1]?.text ?? ''} AS (…)` : undefined),
  ({ name }) => (name === 'GROUP' || name === 'HAVING' ? `${name} …` : undefined),
  ({ name }, statement) => (name === 'INSERT' ? `INSERT INTO ${statement.table}` : undefined),
  ({ name }, statement) =>
    name === 'SELECT' && isFromTable(statement)
      ? `SELECT ${aggregateCall(statement) ?? '…'}`
      : undefined,
  ({ name }, _, text) => (name === 'ORDER' ? cut(text, 16) : undefined),
  ({ name }, _, text) => (name === 'SET' ? cut(text, 24) : undefined),
  ({ name }, _, text) => (name === 'VALUES' ? `${cut(text, 24).replace(/…$/, '…)')}` : undefined),
  ({ name, tokens }, statement) =>
    name === 'FROM' && tokens[1]?.text === '(' && statement.table !== undefined
      ? `FROM (… ${statement.table}${inner(statement)} …)`
      : undefined,
  ({ name }) => (name === 'ORDER' ? '' : undefined),
  ({ name }, _, text) => (name === 'WHERE' ? cut(text, 40) : undefined),
]

function aggregateCall({ aggregate }: Statement): string | undefined {
  if (aggregate === undefined) return undefined
  return aggregate === 'count' ? 'count(*)' : `${aggregate}(…)`
}

function inner({ where }: Statement): string {
  const [first] = where
  return first === undefined ? '' : ` WHERE ${first.column} = ${first.value}`
}

/** What a SELECT without FROM calls is all there is to it. */
function isFromTable({ clauses }: Statement): boolean {
  return clauses.some(({ name }) => name === 'FROM')
}

function commas(tokens: readonly Token[]): number {
  return tokens.filter(({ text, depth }) => text === ',' && depth === 0).length
}

const glued = /^[.,;)\]]$|^::$/
const gluing = /[.([]$|::$/

/** The clause on one line: parameters as values, quotes and the only table's name left out. */
function textOf(clause: Clause, statement: Statement, named = readable): string {
  const kept = withoutPrefixes(clause.tokens, statement)
  let line = ''
  for (const token of kept) {
    const text = shownToken(token, statement, named)
    const apart = line !== '' && token.spaced && !glued.test(text) && !gluing.test(line)
    line += apart ? ` ${text}` : text
  }
  return withoutFiller(line)
}

/** Some ORMs add `OFFSET 0`, `AND 1=1`, and parentheses around everything. */
function withoutFiller(line: string): string {
  if (line === 'OFFSET 0') return ''
  const [, inner = ''] = /^WHERE \((.*) AND 1=1\)$/.exec(line) ?? []
  return inner === '' || /[()]/.test(inner) ? line : `WHERE ${inner}`
}

const keywords = new Set(
  `SELECT FROM WHERE AND OR NOT IN AS IS NULL INSERT INTO
   VALUES UPDATE SET DELETE RETURNING ORDER BY GROUP HAVING LIMIT
   OFFSET FOR SKIP LOCKED NOWAIT SHARE NO ON CONFLICT DO
   NOTHING JOIN LEFT INNER EXISTS BEGIN COMMIT ROLLBACK SAVEPOINT
   RELEASE START TRANSACTION ISOLATION LEVEL READ COMMITTED WITH
   DISTINCT UNION ALL BETWEEN LOCK TABLE DEFAULT CASE WHEN END`.split(/\s+/),
)

function shownToken(
  token: Token,
  { parameters }: Statement,
  named: (name: string) => string,
): string {
  if (token.kind === 'parameter') return valueOf(token, parameters) ?? token.text
  if (token.kind === 'name') return named(token.text)
  if (token.kind === 'word' && keywords.has(token.upper)) return token.upper
  return token.text
}

/** For people: `userId` needs no quotes to be understood. */
function readable(name: string): string {
  return /^[a-z_][a-z0-9_$]*$/i.test(name) ? name : quoted(name)
}

/** `public.` is noise, and so is the table's name before its columns if there is only one table. */
function withoutPrefixes(tokens: readonly Token[], { tables }: Statement): Token[] {
  const kept: Token[] = []
  for (let at = 0; at < tokens.length; at += 1) {
    const token = tokens[at] as Token
    const name = token.kind === 'word' || token.kind === 'name' ? token.text : undefined
    const prefixes = tokens[at + 1]?.text === '.' && tokens[at - 1]?.text !== '.'
    const only = tables.length === 1 && name === tables[0]?.split('.').at(-1)
    if (prefixes && (name === 'public' || only)) {
      const next = tokens[at + 2]
      if (next === undefined) break
      // What follows stands where the prefix stood.
      const rest = withoutPrefixes([{ ...next, spaced: token.spaced }, ...tokens.slice(at + 3)], {
        tables,
      } as Statement)
      return [...kept, ...rest]
    }
    kept.push(token)
  }
  return kept
}

/** Cuts at the end, with a mark. */
export function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1)).trimEnd()}…`
}
