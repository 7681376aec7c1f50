import type { SqlMutant } from './change.ts'

/**
 * A survivor that no test can notice. It is known by its text, so that it may move within its file. A text between
 * slashes is a regular expression.
 */
export interface Known {
  /** Below `packages/holdfast/sql`. */
  readonly file: string
  readonly original: string
  readonly replacement: string
  /** What comes before and after it, where the change itself says too little. */
  readonly after?: string
  readonly before?: string
  readonly reason: string
}

const around = 80

/** The entry that knows a change of a text, if there is one. */
export function knownAs(
  mutant: SqlMutant,
  text: string,
  known: readonly Known[],
): Known | undefined {
  const before = flat(text.slice(Math.max(0, mutant.start - around), mutant.start))
  const rest = flat(text.slice(mutant.end, mutant.end + around))
  return known.find(
    (entry) =>
      isLike(entry.file, mutant.file) &&
      isLike(entry.original, flat(mutant.original)) &&
      isLike(entry.replacement, flat(mutant.replacement)) &&
      (entry.after === undefined || before.trimEnd().endsWith(entry.after)) &&
      (entry.before === undefined || rest.trimStart().startsWith(entry.before)),
  )
}

function isLike(wanted: string, found: string): boolean {
  const [, pattern] = /^\/(.*)\/$/.exec(wanted) ?? []
  return pattern === undefined ? wanted === found : new RegExp(pattern).test(found)
}

/** On one line. */
export function flat(text: string): string {
  return text.replaceAll(/\s+/g, ' ')
}
