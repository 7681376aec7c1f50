/** What a statement would do to the transaction it is sent in. */
export type TransactionControl = 'begin' | 'end'

/** Without one of these words a text controls nothing. Most texts have none, so nothing more is read. */
const anyWord = /\b(?:begin|start|commit|end|abort|rollback|prepare)\b/i

/**
 * Whether a text begins or ends a transaction: BEGIN, START TRANSACTION; COMMIT, END, ROLLBACK, ABORT,
 * PREPARE TRANSACTION. Savepoints do neither. Only a statement of its own can: PostgreSQL refuses both in
 * functions and, inside a transaction block, in procedures.
 *
 * The text may hold several statements. Whether a backslash escapes a quote depends on a setting of the
 * session, so both readings count.
 */
export function controlIn(text: string): TransactionControl | undefined {
  if (!anyWord.test(text)) return undefined
  return (
    strongest(statementsOf(text, false)) ??
    (text.includes('\\') ? strongest(statementsOf(text, true)) : undefined)
  )
}

const toSavepoint = /^rollback (?:work |transaction )?to\b/

/** How often a text goes back to a savepoint; the server answers that with the tag of a whole rollback. */
export function rollbacksToSavepoints(text: string): number {
  let count = 0
  for (const words of statementsOf(text, false)) if (toSavepoint.test(words.join(' '))) count += 1
  return count
}

function strongest(statements: Iterable<readonly string[]>): TransactionControl | undefined {
  let found: TransactionControl | undefined
  for (const words of statements) {
    const control = controlOf(words)
    if (control === 'end') return 'end'
    found ??= control
  }
  return found
}

const begins = /^(?:begin\b|start transaction\b)/
/** Not ROLLBACK TO a savepoint, nor what is about a prepared transaction, which is refused inside a block. */
const ends =
  /^(?:(?:commit|end|abort)\b|prepare transaction\b|rollback\b(?! (?:work |transaction )?to\b))(?! prepared\b)/

/** By the first words of one statement. */
function controlOf(words: readonly string[]): TransactionControl | undefined {
  const beginning = words.join(' ')
  if (begins.test(beginning)) return 'begin'
  return ends.test(beginning) ? 'end' : undefined
}

/** What is no word of a statement: blanks, comments, quoted text, everything else. */
const piece =
  /\s+|--[^\n\r]*|\/\*|(e?)'|"(?:[^"]|"")*(?:"|$)|(\$(?:[a-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$)|([a-z_\u0080-\uffff][\w$\u0080-\uffff]*)|(;)|[^]/giy

/** At most four words decide; the rest of a statement is only passed over. */
const enough = 4

const routine = /^create (?:or replace )?(?:function|procedure)$/

/**
 * The first words of each statement. Those in the body of a CREATE FUNCTION, between BEGIN ATOMIC and END, are
 * taken for statements too, since none of them can control anything: so whatever is in there, what comes after
 * it is read.
 */
function* statementsOf(text: string, backslashes: boolean): Generator<readonly string[]> {
  let words: string[] = []
  /** The next statement that begins with END is the end of such a body. */
  let atomic = false
  let parentheses = 0
  let last = ''
  for (let at = 0; at < text.length; ) {
    piece.lastIndex = at
    const [whole = '', escape, dollar, word, semicolon] = piece.exec(text) ?? []
    at += Math.max(1, whole.length)
    if (whole === '/*') {
      at = afterComment(text, at)
      continue
    }
    if (/^(?:\s|--)/.test(whole)) continue
    const before = last
    last = (word ?? whole).toLowerCase()
    if (escape !== undefined) at = afterQuote(text, at, backslashes || escape !== '')
    else if (dollar !== undefined) at = afterDollar(text, at, dollar)
    else if (word !== undefined) {
      if (words.length < enough) words.push(last)
      if (parentheses > 0) continue
      if (before === 'begin' && last === 'atomic' && isRoutine(words)) atomic = true
      // A body without a statement.
      else if (before === 'atomic' && last === 'end') atomic = false
    } else if (semicolon !== undefined) {
      if (atomic && words[0] === 'end') atomic = false
      else yield words
      words = []
      parentheses = 0
    } else if (whole === '(') parentheses += 1
    else if (whole === ')') parentheses -= 1
  }
  if (!atomic || words[0] !== 'end') yield words
}

function isRoutine(words: readonly string[]): boolean {
  return routine.test(words.slice(0, 2).join(' ')) || routine.test(words.join(' '))
}

/** Comments nest. */
function afterComment(text: string, from: number): number {
  let depth = 1
  for (let at = from; at < text.length; at += 1) {
    if (text.startsWith('*/', at)) {
      depth -= 1
      at += 1
      if (depth === 0) return at + 1
    } else if (text.startsWith('/*', at)) {
      depth += 1
      at += 1
    }
  }
  return text.length
}

function afterQuote(text: string, from: number, backslashes: boolean): number {
  for (let at = from; at < text.length; at += 1) {
    if (backslashes && text[at] === '\\') at += 1
    else if (text[at] === "'") {
      if (text[at + 1] === "'") at += 1
      else {
        // A quote after a line break goes on with the same text, by the same rules.
        continued.lastIndex = at + 1
        const [gap] = continued.exec(text) ?? []
        if (gap === undefined) return at + 1
        at += gap.length
      }
    }
  }
  return text.length
}

const continued = /(?:[ \t\f\v]|--[^\n\r]*)*[\n\r](?:\s|--[^\n\r]*[\n\r])*'/y

function afterDollar(text: string, from: number, mark: string): number {
  const end = text.indexOf(mark, from)
  return end === -1 ? text.length : end + mark.length
}
