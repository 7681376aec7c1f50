/** What a statement would do to the transaction it is sent in. */
export type TransactionControl = 'begin' | 'end'

/** Without one of these words a text controls nothing, and nothing more is read. Most texts have none. */
const anyWord = /\b(?:begin|commit|end|rollback)\b/i

/**
 * Whether a text begins or ends a transaction. Savepoints do neither, nor does what a trigger has between BEGIN and END.
 * SQLite has no other way: DDL is part of the transaction, and there are no procedures.
 */
export function controlIn(text: string): TransactionControl | undefined {
  if (!anyWord.test(text)) return undefined
  let found: TransactionControl | undefined
  for (const words of statementsOf(text)) {
    const control = controlOf(words)
    if (control === 'end') return control
    found ??= control
  }
  return found
}

function controlOf(words: readonly string[]): TransactionControl | undefined {
  const [first] = words
  if (first === 'begin') return 'begin'
  if (first === 'commit' || first === 'end') return 'end'
  return first === 'rollback' && !words.includes('to') ? 'end' : undefined
}

/** Blanks, comments, quoted text, words, the end of a statement. */
const piece = new RegExp(
  [
    String.raw`\s+`,
    '--[^\\n]*',
    String.raw`\/\*[^]*?(?:\*\/|$)`,
    `'(?:[^']|'')*(?:'|$)`,
    `"(?:[^"]|"")*(?:"|$)`,
    '`(?:[^`]|``)*(?:`|$)',
    String.raw`\[[^\]]*(?:\]|$)`,
    String.raw`([a-z_\u0080-\uffff][\w$\u0080-\uffff]*)`,
    '(;)',
    '[^]',
  ].join('|'),
  'giy',
)

/** The first words of each statement, as many as say what it is. */
const enough = 8

function* statementsOf(text: string): Generator<readonly string[]> {
  let words: string[] = []
  /** Of the statement inside of a trigger that is read just now. */
  let inner: string[] | undefined
  piece.lastIndex = 0
  for (let at = 0; at < text.length; at = piece.lastIndex) {
    piece.lastIndex = at
    const [, word, semicolon] = piece.exec(text) ?? []
    if (piece.lastIndex <= at) piece.lastIndex = at + 1
    if (word !== undefined) {
      const into = inner ?? words
      if (into.length < enough) into.push(word.toLowerCase())
      if (inner === undefined && isTrigger(words)) inner = []
    } else if (semicolon !== undefined) {
      // A trigger is over when END stands alone; so does SQLite's shell read it.
      if (inner !== undefined && !(inner.length === 1 && inner[0] === 'end')) {
        inner = []
        continue
      }
      yield words
      words = []
      inner = undefined
    }
  }
  yield words
}

function isTrigger([first, second, third]: readonly string[]): boolean {
  if (first !== 'create') return false
  const isTemporary = second === 'temp' || second === 'temporary'
  return (isTemporary ? third : second) === 'trigger'
}
