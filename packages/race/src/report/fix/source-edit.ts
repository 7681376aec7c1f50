/** Finds in the text of a file what a fix changes there; undefined where it is not found for certain. */
import type { StatementEdit } from './statement-edit.ts'

/** A piece of text that another one takes the place of. */
export interface Change {
  readonly index: number
  /** Characters that are gone. */
  readonly removed: number
  readonly added: string
}

/** The statement as a text of the code, or as a chain of Drizzle's. */
export function statementChange(source: string, edit: StatementEdit): Change | undefined {
  return inText(source, edit) ?? inDrizzle(source, edit)
}

/** The statement as a text of the code, once. */
function inText(source: string, { before, added, at, place }: StatementEdit): Change | undefined {
  const places: number[] = []
  for (let from = source.indexOf(before); from !== -1; from = source.indexOf(before, from + 1)) {
    // Between quotes, or it is a part of another one.
    const [first, last] = [source[from - 1] ?? '', source[from + before.length] ?? '']
    if (first === last && /["'`]/.test(first) && !added.includes(first)) places.push(from)
  }
  const [only, more] = places.toSorted(
    (one, other) => away(source, one, place.line) - away(source, other, place.line),
  )
  if (only === undefined) return undefined
  // Of two in one file the one beside the line is meant, if the other is far away.
  if (more !== undefined && away(source, more, place.line) < 8) return undefined
  return { index: only + at, removed: 0, added }
}

function away(source: string, index: number, line: number): number {
  return Math.abs(lineAt(source, index) - line)
}

/** As editors count: the first is 1. */
export function lineAt(source: string, index: number): number {
  return source.slice(0, index).split('\n').length
}

/** `db.select().from(seats).where(…)` and `db.insert(…).values(…)`, which have methods for it. */
function inDrizzle(source: string, { added, place }: StatementEdit): Change | undefined {
  const method = methodOf(added)
  if (method === undefined || !/from ['"]drizzle-orm/.test(source)) return undefined
  const { begins, call, unless } = method
  const lines = source.split('\n')
  begins.lastIndex = lines.slice(0, place.line - 1).join('\n').length
  const found = begins.exec(source)
  if (found === null || away(source, found.index, place.line) > 4) return undefined
  const end = endOfChain(source, found.index)
  if (end === undefined || unless.test(source.slice(found.index, end))) return undefined
  return { index: end, removed: 0, added: call }
}

interface Method {
  /** What the chain begins with. */
  readonly begins: RegExp
  readonly call: string
  /** A chain with this in it is another one. */
  readonly unless: RegExp
}

function methodOf(added: string): Method | undefined {
  if (/^ ON CONFLICT \([^)]*\) DO NOTHING$/.test(added)) {
    return { begins: /\.insert\(/g, call: '.onConflictDoNothing()', unless: /\.onConflict/ }
  }
  const [, strength, option] = /^ FOR (UPDATE)( SKIP LOCKED)?$/.exec(added) ?? []
  if (strength === undefined) return undefined
  const config = option === undefined ? '' : ', { skipLocked: true }'
  return {
    begins: /\.select\(/g,
    call: `.for('update'${config})`,
    unless: /\.for\(|\.groupBy\(/,
  }
}

/** Behind the last call of `.a(…).b(…)`; undefined where something in it is no plain call. */
function endOfChain(source: string, start: number): number | undefined {
  const call = /\s*\.\w+\(/y
  let at = start
  for (;;) {
    call.lastIndex = at
    const next = call.exec(source)
    if (next === null) return at === start ? undefined : at
    const end = closingOf(source, at + next[0].length)
    if (end === undefined) return undefined
    at = end
  }
}

/** Behind the bracket that closes the one before `from`. */
export function closingOf(source: string, from: number): number | undefined {
  let depth = 1
  let quote = ''
  for (let at = from; at < source.length; at += 1) {
    const sign = source[at] ?? ''
    if (quote !== '') {
      if (sign === '\\') at += 1
      else if (sign === quote) quote = ''
    } else if (/["'`]/.test(sign)) quote = sign
    else if (/[([{]/.test(sign)) depth += 1
    else if (/[)\]}]/.test(sign)) {
      depth -= 1
      if (depth === 0) return at + 1
    }
  }
  return undefined
}
