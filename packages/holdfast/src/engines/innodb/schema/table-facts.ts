import type { Row, Statement } from '../../../core/driver.ts'

/**
 * Opens no snapshot, and needs no right but that to read the table. On MariaDB a session can leave out what we look for,
 * the engine for one (`sql_mode` ORACLE), so it is asked in the server's own mode.
 */
export function showTable(table: string): Statement {
  return { text: `/*M! SET STATEMENT sql_mode = '' FOR */ SHOW CREATE TABLE ${table}`, values: [] }
}

/** An index that statements may be told to use: over whole columns, in their order. */
export interface TableIndex {
  readonly name: string
  readonly isUnique: boolean
  readonly columns: readonly string[]
  /** Those of its columns that it has from the largest to the smallest. */
  readonly descending: ReadonlySet<string>
}

/** What a table is made of, as far as locks depend on it. */
export interface TableFacts {
  readonly isInnodb: boolean
  /** A table whose engine the session does not show: `sql_mode` ANSI of MySQL, which no statement can put aside. */
  readonly hidesEngine: boolean
  /** A table of one session, or a view. */
  readonly isOwn: boolean
  /**
   * The columns of its primary key and of each unique one, whole columns only, by which the server may search: where it may
   * not, it reads all rows, and locks what it reads.
   */
  readonly keys: readonly (readonly string[])[]
  readonly indexes: readonly TableIndex[]
  /** Type of each column, in small letters: `int(11) unsigned not null`. */
  readonly types: ReadonlyMap<string, string>
  /** Of the columns that do not name one. */
  readonly charset: string | undefined
}

/**
 * Names, texts, brackets and commas, blanks, and everything else. Names, comments and defaults are what users write, so
 * that nothing in quotes counts, whatever it looks like.
 */
const piece = /`(?:[^`]|``)*`|"(?:[^"]|"")*"|'(?:[^'\\]|\\[^]|'')*'|[(),]|\s+|[^\s`"'(),]+/gy
const quoted = /^[`"]/

/** Between the brackets of a table: of a column, of a key, of a constraint. */
type Definition = readonly string[]

/** Reads what `showTable` was answered with, whichever quotes the session has it written in. */
export function tableFacts([row]: readonly Row[]): TableFacts {
  const text = row?.['Create Table']
  const { definitions, options } = partsOf(typeof text === 'string' ? text : '')
  const types = new Map<string, string>()
  const keys: (readonly string[])[] = []
  const indexes: TableIndex[] = []
  for (const pieces of definitions) {
    const [first = ''] = pieces
    if (quoted.test(first))
      types.set(unquoted(first), pieces.slice(1).join('').trim().toLowerCase())
    const index = /^(?:PRIMARY|UNIQUE|KEY)$/.test(first) ? indexOf(pieces) : undefined
    if (index === undefined) continue
    if (pieces.some((each) => unusable.test(each))) continue
    if (pieces.includes('HASH') && !hasRoom(index.columns, types)) continue
    indexes.push(index)
    if (index.isUnique) keys.push(index.columns)
  }
  return {
    isInnodb: options.some((option) => /^ENGINE=InnoDB$/i.test(option)),
    hidesEngine:
      typeof text === 'string' &&
      !options.some((option) => option.toUpperCase().startsWith('ENGINE=')),
    isOwn: typeof text !== 'string' || /^CREATE\s+TEMPORARY\b/i.test(text),
    keys,
    indexes,
    types,
    charset: options.map((option) => /^CHARSET=(\w+)$/i.exec(option)?.[1]).find(Boolean),
  }
}

/** A table that is refused, as errors name it. */
export function unfitTable(
  subject: string,
  { hidesEngine }: Pick<TableFacts, 'hidesEngine'>,
): string {
  return hidesEngine ? `${subject}: ${engineHidden}` : subject
}

export const engineHidden =
  'sql_mode ANSI of MySQL does not show its engine; set ANSI_QUOTES and the other parts of ANSI instead'

/** MySQL may be told to pass an index over, MariaDB as well. */
const unusable = /^(?:INVISIBLE|IGNORED)$/

/** So many bytes an index of InnoDB has room for, whatever the format of its rows is. */
const leastRoom = 767
/** Of each type that has no length, and at most four bytes for each character of those that have one. */
const [mostOfOthers, mostOfCharacter] = [32, 4]

/**
 * MariaDB calls both so: a unique key that it finds by a hash because the columns are too long for an index, and an index
 * like any other that was asked for as a hash.
 */
function hasRoom(columns: readonly string[], types: ReadonlyMap<string, string>): boolean {
  const bytes = columns.map((column) => {
    const type = types.get(column) ?? ''
    const [, length] = /^(?:var)?(?:char|binary)\((\d+)\)/.exec(type) ?? []
    if (length !== undefined) return Number(length) * mostOfCharacter
    return /^\w*(?:text|blob)\b|^(?:json|geometry)\b/.test(type) ? Infinity : mostOfOthers
  })
  return bytes.reduce((sum, each) => sum + each, 0) <= leastRoom
}

function indexOf(pieces: Definition): TableIndex | undefined {
  const columns = columnsOf(pieces)
  if (columns === undefined) return undefined
  const [first] = pieces
  const head = pieces.slice(0, pieces.indexOf('('))
  const name = head.find((each) => quoted.test(each))
  return {
    name: name === undefined ? 'PRIMARY' : unquoted(name),
    isUnique: first !== 'KEY',
    columns,
    descending: descendingIn(pieces),
  }
}

/** DESC stands behind the name that it is about. */
function descendingIn(pieces: Definition): ReadonlySet<string> {
  const words = pieces.filter((each) => each.trim() !== '')
  const found = words.filter((_, at) => /^DESC$/i.test(words[at + 1] ?? ''))
  return new Set(found.map(unquoted))
}

/** What stands in the outermost brackets, and what stands behind them. */
function partsOf(text: string): {
  readonly definitions: readonly Definition[]
  readonly options: readonly string[]
} {
  const definitions: Definition[] = []
  const options: string[] = []
  let pieces: string[] = []
  let depth = 0
  for (const [each] of text.matchAll(piece)) {
    if (each === ')') depth -= 1
    const isOver = depth === 0 || (depth === 1 && each === ',')
    if (isOver && pieces.length > 0) {
      definitions.push(pieces)
      pieces = []
    }
    if (depth === 0) {
      if (definitions.length > 0) options.push(each)
    } else if (!isOver && (pieces.length > 0 || each.trim() !== '')) pieces.push(each)
    if (each === '(') depth += 1
  }
  return { definitions, options }
}

/** Nothing of a key that has only the beginning of a column, or an expression. */
function columnsOf(pieces: Definition): string[] | undefined {
  const list = pieces.slice(pieces.indexOf('(') + 1, pieces.lastIndexOf(')'))
  const names: string[] = []
  for (const each of list) {
    if (quoted.test(each)) names.push(unquoted(each))
    else if (!/^(?:,|\s+|ASC|DESC)$/i.test(each)) return undefined
  }
  return names
}

function unquoted(name: string): string {
  const [quote = ''] = name
  return name.slice(1, -1).replaceAll(quote + quote, quote)
}
