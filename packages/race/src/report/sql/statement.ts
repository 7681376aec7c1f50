import { type Token, tokensOf } from './tokens.ts'

/** A part of a statement at its outermost level: `FROM seats`, `WHERE event_id = 1`. */
export interface Clause {
  readonly name: string
  readonly tokens: readonly Token[]
}

/** `event_id = 1`: a column and the value it was compared with, set to, or inserted as. */
export interface Equality {
  readonly column: string
  readonly value: string
}

/** What a person would say about a statement. Read from its text, so a guess where text is odd. */
export interface Statement {
  /** `SELECT`, `INSERT`, `BEGIN`, …; upper case. Empty for an empty statement. */
  readonly verb: string
  /** The first table it names, without the schema `public`. */
  readonly table: string | undefined
  /** Tables it names, without the schema `public`. */
  readonly tables: readonly string[]
  /** Columns its WHERE compares with a value. */
  readonly where: readonly Equality[]
  /** Everything that its WHEREs say. */
  readonly whereTokens: readonly Token[]
  /** Values of the first row of an INSERT that names its columns, or of an UPDATE's SET. */
  readonly sets: readonly Equality[]
  /** The same of an INSERT in their order, also where it does not name them; undefined for what is no value. */
  readonly values: readonly (string | undefined)[]
  /** Columns that an UPDATE sets, and whether from what they are: `used = used + 1`. */
  readonly assigned: readonly { readonly column: string; readonly fromItself: boolean }[]
  /** `count`, `sum`, … if the select list has one. */
  readonly aggregate: string | undefined
  /** `FOR UPDATE`, `FOR NO KEY UPDATE SKIP LOCKED`, …, anywhere in it. */
  readonly locking: string | undefined
  readonly skipsLocked: boolean
  readonly limited: boolean
  /** Whether it looks at rows: every statement but an INSERT of given values. */
  readonly looks: boolean
  readonly clauses: readonly Clause[]
  readonly parameters: readonly (string | null)[]
}

const starters = new Set(
  `WITH SELECT FROM WHERE GROUP HAVING WINDOW ORDER LIMIT OFFSET
   FETCH FOR INSERT VALUES UPDATE SET DELETE RETURNING ON UNION`.split(/\s+/),
)
const aggregates = new Set(['COUNT', 'SUM', 'MAX', 'MIN', 'AVG', 'EXISTS', 'BOOL_OR', 'BOOL_AND'])

export function readStatement(sql: string, parameters: readonly (string | null)[] = []): Statement {
  return describe(tokensOf(sql.replace(/;\s*$/, '')), parameters)
}

function describe(tokens: readonly Token[], parameters: readonly (string | null)[]): Statement {
  const clauses = clausesOf(tokens)
  const body = (name: string): readonly Token[] =>
    clauses.find((clause) => clause.name === name)?.tokens ?? []
  const tables = tablesOf(tokens)
  const main = clauses.find(({ name }) => name !== 'WITH')
  const locking = lockingOf(tokens)
  const asked = whereTokens(tokens)
  const values = insertedValues(body('VALUES'), parameters)
  return {
    verb: main?.name ?? '',
    table: targetOf(main) ?? tables[0],
    tables,
    where: equalities(asked, parameters),
    whereTokens: asked,
    sets:
      main?.name === 'INSERT'
        ? insertedColumns(body('INSERT'), values)
        : equalities(body('SET'), parameters),
    values,
    assigned: assignments(body('SET')),
    aggregate: tokens
      .find(
        (token, at) =>
          token.kind === 'word' && aggregates.has(token.upper) && tokens[at + 1]?.text === '(',
      )
      ?.text.toLowerCase(),
    locking,
    skipsLocked: locking?.endsWith('SKIP LOCKED') ?? false,
    limited: tokens.some(({ upper }) => upper === 'LIMIT' || upper === 'FETCH'),
    looks: main?.name !== 'INSERT' || tokens.some(({ upper }) => upper === 'SELECT'),
    clauses,
    parameters,
  }
}

/** Splits at the keywords of the outermost level. */
function clausesOf(tokens: readonly Token[]): Clause[] {
  const clauses: { name: string; tokens: Token[] }[] = []
  for (const [at, token] of tokens.entries()) {
    const open = clauses.at(-1)
    if (
      open === undefined ||
      (token.depth === 0 && starts(token, tokens[at - 1], open.name, tokens[at + 1]))
    ) {
      clauses.push({ name: token.upper, tokens: [token] })
    } else {
      open.tokens.push(token)
    }
  }
  return clauses
}

function starts(
  token: Token,
  before: Token | undefined,
  open: string,
  after: Token | undefined,
): boolean {
  if (token.kind !== 'word' || !starters.has(token.upper)) return false
  // `ON CONFLICT DO UPDATE SET …` is one clause; `ON` of a join belongs to its FROM.
  if (open === 'ON') return token.upper === 'RETURNING'
  if (token.upper === 'ON') return after?.upper === 'CONFLICT'
  if (token.upper === 'UPDATE') return open !== 'FOR'
  if (token.upper === 'FROM') return open !== 'DELETE' && before?.upper !== 'DISTINCT'
  if (token.upper === 'SET') return open === 'UPDATE'
  return true
}

/** What is written to, if it is a writing statement. */
function targetOf(main: Clause | undefined): string | undefined {
  if (main === undefined || !['INSERT', 'UPDATE', 'DELETE'].includes(main.name)) return undefined
  const rest = main.tokens.slice(1).filter(({ upper }) => !['INTO', 'FROM', 'ONLY'].includes(upper))
  return chainAt(rest, 0)?.name
}

function tablesOf(tokens: readonly Token[]): string[] {
  const defined = new Set(
    tokens.flatMap((token, at) =>
      tokens[at + 1]?.upper === 'AS' &&
      /^(?:\(|MATERIALIZED|NOT)$/.test(tokens[at + 2]?.upper ?? '')
        ? [token.text]
        : [],
    ),
  )
  const found = tokens.flatMap((token, at) => {
    const introduces =
      ['FROM', 'JOIN', 'INTO'].includes(token.upper) ||
      (token.upper === 'UPDATE' && !['FOR', 'KEY', 'DO'].includes(tokens[at - 1]?.upper ?? '')) ||
      (token.upper === 'TABLE' && tokens[at - 1]?.upper === 'LOCK')
    if (token.kind !== 'word' || !introduces || tokens[at - 1]?.upper === 'DISTINCT') return []
    const start = tokens[at + 1]?.upper === 'ONLY' ? at + 2 : at + 1
    const chain = chainAt(tokens, start)
    // A function in FROM is no table.
    if (chain === undefined || (token.upper !== 'INTO' && tokens[chain.end]?.text === '('))
      return []
    return defined.has(chain.name) ? [] : [chain.name]
  })
  return [...new Set(found)]
}

/** `"public"."seats"` → seats; `billing.seats` → billing.seats. */
function chainAt(
  tokens: readonly Token[],
  at: number,
): { readonly name: string; readonly end: number } | undefined {
  const parts: string[] = []
  let end = at
  for (;;) {
    const part = tokens[end]
    if (part === undefined || (part.kind !== 'word' && part.kind !== 'name')) break
    if (part.kind === 'word' && starters.has(part.upper)) break
    parts.push(part.text)
    end += 1
    if (tokens[end]?.text !== '.') break
    end += 1
  }
  if (parts[0] === 'public' && parts.length > 1) parts.shift()
  return parts.length === 0 ? undefined : { name: parts.join('.'), end }
}

/** Everything after a WHERE of any level, as far as its own level goes. */
function whereTokens(tokens: readonly Token[]): Token[] {
  const found: Token[] = []
  let level: number | undefined
  for (const [at, token] of tokens.entries()) {
    if (level !== undefined && token.depth < level) level = undefined
    if (
      level !== undefined &&
      token.depth === level &&
      token.kind === 'word' &&
      starters.has(token.upper) &&
      tokens[at - 1]?.upper !== 'DISTINCT'
    ) {
      level = undefined
    }
    if (level !== undefined) found.push(token)
    if (token.kind === 'word' && token.upper === 'WHERE') level = token.depth
  }
  return found
}

/** `a.b = $1`, `b = 'x'`: the column's last name and the value as a person writes it. */
function equalities(tokens: readonly Token[], parameters: readonly (string | null)[]): Equality[] {
  return tokens.flatMap((token, at): Equality[] => {
    const column = tokens[at - 1]
    const value = tokens[at + 1]
    if (token.text !== '=' || column === undefined || value === undefined) return []
    if (column.kind !== 'word' && column.kind !== 'name') return []
    const shown = valueOf(value, parameters)
    // `qty = 5 - 1` is not the value 5.
    const after = tokens[at + 2]?.text ?? ''
    if (shown === undefined || /^[-+*/%|(]/.test(after)) return []
    return [{ column: column.text, value: shown }]
  })
}

function assignments(set: readonly Token[]): { column: string; fromItself: boolean }[] {
  const parts: Token[][] = [[]]
  for (const token of set.slice(1)) {
    if (token.text === ',' && token.depth === 0) parts.push([])
    else parts.at(-1)?.push(token)
  }
  return parts.flatMap((part) => {
    const equals = part.findIndex(({ text }) => text === '=')
    const column = part[equals - 1]?.text
    if (column === undefined) return []
    const rest = part.slice(equals + 1)
    return [
      { column, fromItself: rest.some(({ text, kind }) => text === column && kind !== 'string') },
    ]
  })
}

function insertedColumns(
  insert: readonly Token[],
  values: readonly (string | undefined)[],
): Equality[] {
  return insert
    .filter(({ depth, kind }) => depth === 1 && (kind === 'word' || kind === 'name'))
    .flatMap(({ text: column }, at): Equality[] => {
      const value = values[at]
      return value === undefined ? [] : [{ column, value }]
    })
}

/** Of the first row. */
function insertedValues(
  values: readonly Token[],
  parameters: readonly (string | null)[],
): (string | undefined)[] {
  const first = values.slice(1)
  if (first.length === 0) return []
  const end = first.findIndex(({ text, depth }) => text === ')' && depth === 0)
  const cells: Token[][] = [[]]
  for (const token of first.slice(1, end === -1 ? undefined : end)) {
    if (token.text === ',' && token.depth === 1) cells.push([])
    else cells.at(-1)?.push(token)
  }
  return cells.map(([only, ...rest]) =>
    only === undefined || rest.length > 0 ? undefined : valueOf(only, parameters),
  )
}

/** A value as it is shown, or undefined if the token is none. */
export function valueOf(token: Token, parameters: readonly (string | null)[]): string | undefined {
  if (token.kind === 'number' || token.kind === 'string') return token.text
  if (token.kind === 'word' && /^(?:TRUE|FALSE|NULL)$/.test(token.upper)) return token.text
  if (token.kind !== 'parameter') return undefined
  const at = Number(token.text.slice(1)) - 1
  return at < parameters.length ? literal(parameters[at] ?? null) : token.text
}

const shownCharacters = 24

/** A parameter as SQL would write it, shortened. */
function literal(value: string | null): string {
  if (value === null) return 'NULL'
  if (/^-?\d{1,18}(?:\.\d+)?$/.test(value)) return value
  const flat = value.replaceAll(/\s+/g, ' ')
  // The beginning of a uuid tells it from others.
  const limit = /^[0-9a-f]{8}-[0-9a-f]{4}-/i.test(flat) ? 8 : shownCharacters
  const shown = flat.length > limit + 1 ? `${flat.slice(0, limit)}…` : flat
  return `'${shown.replaceAll("'", "''")}'`
}

function lockingOf(tokens: readonly Token[]): string | undefined {
  const at = tokens.findIndex(
    ({ upper, kind }, index) =>
      kind === 'word' &&
      upper === 'FOR' &&
      /^(?:UPDATE|SHARE|NO|KEY)$/.test(tokens[index + 1]?.upper ?? ''),
  )
  if (at === -1) return undefined
  const words: string[] = []
  for (const { kind, upper } of tokens.slice(at)) {
    if (kind !== 'word' || !/^(?:FOR|NO|KEY|UPDATE|SHARE|SKIP|LOCKED|NOWAIT)$/.test(upper)) break
    words.push(upper)
  }
  return words.join(' ')
}
