/** What a statement would do to the transaction it is sent in. */
export type TransactionControl = 'begin' | 'end'

/** Without one of these words a text controls nothing, and nothing more is read. Most texts have none. */
const anyWord =
  /(?:\b|\/\*M?!\d+)(?:begin|start|commit|rollback|xa|create|alter|drop|truncate|rename|grant|revoke|lock|unlock|analyze|backup|role|optimize|repair|check|cache|load|flush|reset|install|uninstall|change|stop|purge|shutdown|autocommit|password|import|clone)\b/i

/**
 * Whether a text begins or ends a transaction: BEGIN, COMMIT and the like, and what MariaDB and MySQL commit before
 * they do it: most of DDL, of the statements about rights, and LOCK TABLES. Savepoints and temporary tables do neither.
 *
 * Read as the server reads it: what is in comments that are executed counts. Whether a backslash escapes a quote, and
 * whether a double quote begins a text, are settings of the session; where they are not known, only what holds for all
 * readings counts: whether a text is sent must not depend on what users have written in it. What is passed over then, or
 * done by a procedure, the tripwire tells.
 */
export function controlIn(text: string, quotes: Quotes = {}): TransactionControl | undefined {
  const found = controlsIn(text, quotes)
  if (found.includes(undefined)) return undefined
  return found.includes('end') ? 'end' : found[0]
}

/** What quotes mean on a session; what is missing is not known. */
export interface Quotes {
  /** A backslash escapes what follows it in a text. */
  readonly backslashes?: boolean
  /** A double quote begins a name, in which a backslash is one. */
  readonly ansi?: boolean
}

/** In which quotes a backslash escapes. */
type Reading = 'none' | 'single' | 'both'

function readingsOf(text: string, { backslashes, ansi }: Quotes): readonly Reading[] {
  if (!text.includes('\\')) return ['none']
  const none: readonly Reading[] = backslashes === true ? [] : ['none']
  if (backslashes === false) return none
  if (ansi !== undefined) return [...none, ansi ? 'single' : 'both']
  return text.includes('"') ? [...none, 'single', 'both'] : [...none, 'both']
}

/** By each reading that is possible. */
function controlsIn(text: string, quotes: Quotes): readonly (TransactionControl | undefined)[] {
  if (!anyWord.test(text)) return [undefined]
  return readingsOf(text, quotes).map((reading) => {
    const all = Array.from(statementsOf(text, reading, quotes.ansi), controlOf)
    return all.find((each) => each === 'end') ?? all.find((each) => each !== undefined)
  })
}

const opaque = /^(?:call|execute|prepare|begin|if|case|loop|while|repeat|for)\b/

/**
 * Whether a text may do what is not read in it: it runs a procedure, a prepared text, a block of MariaDB's, or ends the
 * transaction by one reading alone.
 */
export function isOpaque(text: string, quotes: Quotes = {}): boolean {
  if (new Set(controlsIn(text, quotes)).size > 1) return true
  if (
    !/(?:\b|\/\*M?!\d+)(?:call|execute|prepare|begin|if|case|loop|while|repeat|for)\b/i.test(text)
  )
    return false
  return readingsOf(text, quotes).some((reading) => {
    for (const words of statementsOf(text, reading))
      if (opaque.test(beginningOf(words))) return true
    return false
  })
}

/** Whether quotes may mean something else afterwards. */
export function setsQuotes(text: string): boolean {
  return /\bsql_mode\b/i.test(text)
}

/** MariaDB sets something for the statement behind it alone. */
const prefix = /^set statement\b.*? for /

function beginningOf(words: readonly string[]): string {
  let beginning = words.join(' ')
  while (prefix.test(beginning)) beginning = beginning.replace(prefix, '')
  return beginning
}

const begins = /^(?:begin\b(?! not atomic)|start transaction\b|xa (?:start|begin)\b)/
const ends = new RegExp(
  [
    'commit',
    String.raw`rollback\b(?! (?:work )?to\b)`,
    String.raw`xa\b(?! (?:start|begin|recover)\b)`,
    // Not of a sequence.
    String.raw`create\b(?! (?:or replace )?temporary table\b)`,
    String.raw`drop\b(?! temporary\b)`,
    'alter',
    'truncate',
    'rename',
    'grant',
    'revoke',
    'lock',
    'unlock',
    // Not of a statement, which MariaDB then runs and explains.
    String.raw`analyze (?:(?:local|no_write_to_binlog) )?tables?`,
    'backup',
    'optimize',
    'repair',
    'check',
    'cache',
    'load index',
    'flush',
    'reset',
    'install',
    'uninstall',
    'change',
    'start',
    'stop',
    'purge',
    'shutdown',
    'import',
    'clone',
    String.raw`set (?:\w+ )?password`,
    'set default role',
  ]
    .map((each) => `^${each}\\b`)
    .join('|'),
)
/** To switch it on is a COMMIT, wherever it stands among what is set; to switch it off says that it was on. */
const autocommit = /^set\b.*\bautocommit\b/
/** A block of MariaDB's: its statements stand behind each other like any others. */
const block = /^(?:begin not atomic|if|case|loop|while|repeat|for|then|else|do)\b/

function controlOf(words: readonly string[]): TransactionControl | undefined {
  const beginning = beginningOf(words)
  if (begins.test(beginning)) return 'begin'
  if (ends.test(beginning) || autocommit.test(beginning)) return 'end'
  if (!block.test(beginning)) return undefined
  const inner = /\b(?:commit|rollback|start transaction)\b/.test(beginning)
  return inner ? 'end' : undefined
}

/**
 * Blanks, comments, quoted text, words, the end of a statement. The beginning of a comment that is executed is passed
 * over like a blank, and so is its end.
 */
const pieces = (reading: Reading): RegExp => {
  const inQuotes = (quote: string, escapes: boolean): string =>
    escapes
      ? String.raw`${quote}(?:[^${quote}\\]|\\[^]|${quote}${quote})*(?:${quote}|$)`
      : `${quote}(?:[^${quote}]|${quote}${quote})*(?:${quote}|$)`
  const parts = [
    String.raw`\s+`,
    String.raw`--(?=[\s\u0000-\u001f]|$)[^\n]*`,
    '#[^\\n]*',
    String.raw`\/\*M?!\d*`,
    String.raw`\/\*[^]*?(?:\*\/|$)`,
    String.raw`\*\/`,
    inQuotes("'", reading !== 'none'),
    `(${inQuotes('"', reading === 'both')})`,
    '(`(?:[^`]|``)*(?:`|$))',
    String.raw`([a-z_$\u0080-\uffff][\w$\u0080-\uffff]*)`,
    '(;)',
    '[^]',
  ]
  return new RegExp(parts.join('|'), 'giy')
}
const readings = { none: pieces('none'), single: pieces('single'), both: pieces('both') }

/** The words of each statement. So many that a SET of several variables is read to its end. */
const enough = 400

/** A variable whose name is quoted is the same. */
const quotedVariable = /^(["`])autocommit\1$/i

function* statementsOf(text: string, reading: Reading, ansi = false): Generator<readonly string[]> {
  const piece = readings[reading]
  let words: string[] = []
  piece.lastIndex = 0
  for (let at = 0; at < text.length; at = piece.lastIndex) {
    piece.lastIndex = at
    const [, doubled, name, plain, semicolon] = piece.exec(text) ?? []
    const quoted = ansi ? (doubled ?? name) : name
    const word = quotedVariable.test(quoted ?? '') ? 'autocommit' : plain
    if (piece.lastIndex <= at) piece.lastIndex = at + 1
    if (semicolon !== undefined) {
      yield words
      words = []
    } else if (word !== undefined && words.length < enough) words.push(word.toLowerCase())
  }
  yield words
}
