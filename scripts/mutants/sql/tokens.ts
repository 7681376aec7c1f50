/** A piece of SQL that means something: white space and comments are between the tokens. */
export interface Token {
  readonly kind: 'word' | 'number' | 'string' | 'name' | 'sign'
  /** As it is written; words in capitals. */
  readonly text: string
  readonly start: number
  readonly end: number
  /** How many brackets, and CASEs, are open around it; a bracket itself counts as outside. */
  readonly depth: number
  /** Whether it is in the body of a function, which is a dollar-quoted text after AS. */
  readonly body: boolean
}

const patterns: readonly (readonly [Token['kind'] | 'nothing', RegExp])[] = [
  ['nothing', /\s+|--[^\n]*/y],
  ['string', /[eE]'(?:[^'\\]|''|\\.)*'/sy],
  ['string', /'(?:[^']|'')*'/y],
  // With the colon of a psql variable, such as :"schema".
  ['name', /:?"(?:[^"]|"")*"/y],
  ['word', /[A-Za-z_][\w$]*/y],
  ['number', /\d+(?:\.(?!\.)\d*)?/y],
  ['sign', /->>|->|<=|>=|<>|!=|::|:=|\|\||\.\.|>>|<</y],
  ['sign', /[^\s\w]/y],
]
const dollar = /\$(?:[A-Za-z_]\w*)?\$/y

/** The tokens of a file. A dollar-quoted text is one string, but for the body of a function, which is read as well. */
export function tokensOf(text: string): Token[] {
  const tokens: Token[] = []
  let depth = 0
  let cases = 0
  let closing: string | undefined
  let at = 0
  const add = (kind: Token['kind'], end: number): void => {
    const token = kind === 'word' ? text.slice(at, end).toUpperCase() : text.slice(at, end)
    const opensCase = token === 'CASE' && tokens.at(-1)?.text !== 'END'
    const closesCase = token === 'END' && cases > 0 && !endsBlock(text, end)
    if (token === ')' || token === ']' || closesCase) depth -= 1
    if (closesCase) cases -= 1
    tokens.push({ kind, text: token, start: at, end, depth, body: closing !== undefined })
    if (token === '(' || token === '[' || opensCase) depth += 1
    if (opensCase) cases += 1
    at = end
  }
  while (at < text.length) {
    const comment = text.startsWith('/*', at) ? endOfComment(text, at) : at
    const tag = matchAt(dollar, text, at)
    if (comment > at) {
      at = comment
    } else if (tag !== undefined && tag === closing) {
      closing = undefined
      add('sign', at + tag.length)
    } else if (tag !== undefined && closing === undefined && tokens.at(-1)?.text === 'AS') {
      add('sign', at + tag.length)
      closing = tag
    } else if (tag !== undefined) {
      const end = text.indexOf(tag, at + tag.length)
      add('string', end < 0 ? text.length : end + tag.length)
    } else {
      const [kind, end] = nextAt(text, at)
      if (kind === 'nothing') at = end
      else add(kind, end)
    }
  }
  return tokens
}

/** Whether an END is that of IF or LOOP, and not of a CASE. */
function endsBlock(text: string, after: number): boolean {
  return matchAt(/\s+(?:if|loop)\b/iy, text, after) !== undefined
}

/** Comments of this kind can be in one another. */
function endOfComment(text: string, start: number): number {
  let open = 0
  for (let at = start; at < text.length; at += 1) {
    const pair = text.slice(at, at + 2)
    if (pair === '/*') open += 1
    if (pair === '*/') open -= 1
    if (pair === '/*' || pair === '*/') at += 1
    if (open === 0) return at + 1
  }
  return text.length
}

function nextAt(text: string, at: number): readonly [Token['kind'] | 'nothing', number] {
  for (const [kind, pattern] of patterns) {
    const found = matchAt(pattern, text, at)
    if (found !== undefined) return [kind, at + found.length]
  }
  return ['sign', at + 1]
}

function matchAt(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at
  return pattern.exec(text)?.[0]
}
