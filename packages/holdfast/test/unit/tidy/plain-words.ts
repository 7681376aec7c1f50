/**
 * Plain words: what people read in the middle of an incident, some of them in their second language. Rules of taste stay
 * with the reviewer; these two can be counted.
 */

/** Words of ours, riddles and wit, with what to say instead. */
export const banned: readonly (readonly [phrase: RegExp, instead: string])[] = [
  [/\b(?:put|puts|putting) (?:it |them |an? \w+ |\w+ )?aside\b/i, 'reserve'],
  [/\bwords of yours\b/i, 'metadata'],
  [/\bmend(?:s|ed|ing)?\b/i, 'fix'],
  [/\b(?:is|are|was|were|be|been|being|gets?|got) told\b/i, 'name who reports what to whom'],
  [
    /\b(?:unless|until) told\b|\bunless (?:you|it|somebody|a call) says? otherwise\b/i,
    'Default: …',
  ],
  [/\b(?:a|one|each|every|this|next) look(?!-)\b|\blooks (?:are|is)\b/i, 'query'],
  [/\blets? (?:it |them |nothing |anything )?through\b/i, 'name who accepts or refuses'],
  [/\bwhat is due\b/i, 'name what is due: holds, jobs, ticks'],
  [/\bwithout a word\b|\bsays nothing about\b/i, 'silently; does not report'],
  [/\bbehind your back\b|\bbe glad\b|\bbears? out\b/i, 'say it plainly'],
  [/\boutside of\b/i, 'outside'],
  [/\brooms?\b/i, 'folder, feature, space'],
  [/\bin (?:somebody|one)'s way\b|\bof no account\b/i, 'say it plainly'],
  [/\bby now nobody\b|\bnobody but\b/i, 'only'],
]

const mostWords = 30

/** A page or a message, and what it is called in a finding. */
export interface Read {
  readonly place: string
  readonly text: string
}

/** One run of text that is read on its own: a paragraph, an item, a cell, a heading. */
export interface Passage {
  readonly line: number
  readonly text: string
}

/** Findings, as `place:line what is wrong`. */
export function checkPlainWords({ place, text }: Read): string[] {
  return passagesOf(text).flatMap((passage) => checkPassage(place, passage))
}

/** The same for one piece of text. */
export function checkPassage(place: string, { line, text }: Passage): string[] {
  const words = banned.flatMap(([phrase, instead]) => {
    const found = phrase.exec(text)?.[0]
    return found === undefined ? [] : [`${place}:${line} says "${found}": ${instead}`]
  })
  const long = sentencesOf(text)
    .filter((sentence) => countOf(sentence) > mostWords)
    .map((sentence) => {
      const start = sentence.split(' ').slice(0, 6).join(' ')
      return `${place}:${line} has a sentence of ${countOf(sentence)} words: ${start} …`
    })
  return [...words, ...long]
}

/** What of Markdown is prose, in pieces that are read on their own; code and pictures are none. */
export function passagesOf(markdown: string): Passage[] {
  const passages: Passage[] = []
  let open: { line: number; text: string } | undefined
  let inCode = false
  const end = (): void => {
    if (open !== undefined) passages.push(open)
    open = undefined
  }
  for (const [at, raw] of markdown
    .replace(/^---\n[\s\S]*?\n---\n/, '')
    .split('\n')
    .entries()) {
    const line = at + 1
    if (/^\s*```/.test(raw)) {
      end()
      inCode = !inCode
      continue
    }
    const text = plain(raw)
    if (inCode || /^\s*<!--.*-->\s*$/.test(raw)) continue
    if (text === '') end()
    else if (raw.startsWith('|')) {
      end()
      const cells = text.split('|').filter((cell) => /\w/.test(cell))
      passages.push(...cells.map((cell) => ({ line, text: cell.trim() })))
    } else if (raw.startsWith('#')) {
      end()
      passages.push({ line, text: text.replace(/^#+ /, '') })
    } else {
      const item = /^\s*(?:[-*]|\d+\.) +/.exec(text)?.[0]
      if (item !== undefined) end()
      const rest = text.slice(item?.length ?? 0).trim()
      if (open === undefined) open = { line, text: rest }
      else open.text += ` ${rest}`
    }
  }
  end()
  return passages
}

/** Code is one word, and so is a list of it; a link is its text, a picture nothing. */
function plain(line: string): string {
  return line
    .replace(/!\[[^\]]*\]\([^)]*\)/g, '')
    .replace(/`[^`]*`/g, 'Code')
    .replace(/Code(?:(?:,| and| or|, and|, or) Code)+/g, 'Code')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[*_>]{1,3}/g, '')
    .trimEnd()
}

function sentencesOf(text: string): string[] {
  return text
    .split(/(?<=[.!?…][)"']?)\s+(?=[A-Z("'`\d])|(?<=:)\s+(?=[A-Z])/)
    .map((sentence) => sentence.trim())
}

function countOf(sentence: string): number {
  return sentence.split(/\s+/).filter((word) => /\w/.test(word)).length
}
