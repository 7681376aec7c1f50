/** Changes of a file as a unified diff, for `git apply`. */
import { type Change, lineAt } from './source-edit.ts'

/** Lines before and after a change. */
const context = 3

/** Lines that are replaced, from the first to the last, counted from 1. */
interface Block {
  readonly first: number
  readonly last: number
  readonly now: readonly string[]
}

export function unified(file: string, source: string, changes: readonly Change[]): string {
  const old = source.split('\n')
  const isEnded = old.at(-1) === ''
  const last = isEnded ? old.length - 1 : old.length
  const lines: string[] = [`--- a/${file}`, `+++ b/${file}`]
  const add = (sign: string, from: number, to: number): void => {
    for (let line = from; line <= to; line += 1) {
      lines.push(sign + (old[line - 1] ?? ''))
      if (line === last && !isEnded) lines.push(noNewline)
    }
  }
  let moved = 0
  for (const hunk of hunksOf(blocksOf(source, changes))) {
    const from = Math.max(1, (hunk[0]?.first ?? 1) - context)
    const to = Math.min(last, (hunk.at(-1)?.last ?? 1) + context)
    const more = hunk.reduce((sum, block) => sum + grown(block), 0)
    const count = to - from + 1
    lines.push(`@@ -${from},${count} +${from + moved},${count + more} @@`)
    let at = from
    for (const block of hunk) {
      add(' ', at, block.first - 1)
      add('-', block.first, block.last)
      lines.push(...block.now.map((line) => `+${line}`))
      if (block.last === last && !isEnded) lines.push(noNewline)
      at = block.last + 1
    }
    add(' ', at, to)
    moved += more
  }
  return [...lines, ''].join('\n')
}

const noNewline = '\\ No newline at end of file'

function grown({ first, last, now }: Block): number {
  return now.length - (last - first + 1)
}

/** What is changed in one line, or in lines that meet, is one block. */
function blocksOf(source: string, changes: readonly Change[]): readonly Block[] {
  const sorted = changes.toSorted((one, other) => one.index - other.index)
  const groups: { first: number; last: number; readonly inside: Change[] }[] = []
  for (const change of sorted) {
    const first = lineAt(source, change.index)
    const last = lineAt(source, change.index + change.removed)
    const before = groups.at(-1)
    if (before !== undefined && first <= before.last) {
      before.last = Math.max(before.last, last)
      before.inside.push(change)
    } else groups.push({ first, last, inside: [change] })
  }
  const lines = source.split('\n')
  return groups.map(({ first, last, inside }) => {
    const start = lines.slice(0, first - 1).join('\n').length + (first > 1 ? 1 : 0)
    let text = lines.slice(first - 1, last).join('\n')
    for (const { index, removed, added } of inside.toReversed()) {
      text = text.slice(0, index - start) + added + text.slice(index - start + removed)
    }
    return { first, last, now: text.split('\n') }
  })
}

/** Blocks whose surroundings meet are one hunk. */
function hunksOf(blocks: readonly Block[]): readonly (readonly Block[])[] {
  const hunks: Block[][] = []
  for (const block of blocks) {
    const before = hunks.at(-1)
    const end = before?.at(-1)?.last ?? Number.NEGATIVE_INFINITY
    if (before !== undefined && block.first - end <= 2 * context) before.push(block)
    else hunks.push([block])
  }
  return hunks
}
