/** Texts that are too long to be taken apart: a file in a column, or in an answer. */
import { createHash } from 'node:crypto'

const longest = 500_000

/** Words for a long text that are equal if the texts are; any other text as it is. */
export function inShort(text: string): string {
  if (text.length <= longest) return text
  return shortened(text)
}

function shortened(text: string): string {
  const hash = createHash('sha256').update(text).digest('hex')
  return `‹${text.length} characters, sha256 ${hash}›`
}

/** The same of a list of many numbers: a file, a histogram, an embedding. Undefined of any other list. */
export function listInShort(list: readonly unknown[]): string | undefined {
  if (list.length <= 1_000) return undefined
  // Holes are no numbers.
  for (let place = 0; place < list.length; place++) {
    const item = list[place]
    if (typeof item !== 'number' || !Number.isFinite(item)) return undefined
  }
  return shortened(list.map((item) => (Object.is(item, -0) ? '-0' : String(item))).join())
}

/** Nothing in it is of chance: it is compared as it is. */
export function isInShort(text: string): boolean {
  return /^‹\d+ characters, sha256 [0-9a-f]{64}›$/.test(text)
}
