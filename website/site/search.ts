/**
 * How the search of the site cuts text into words and weighs them. VitePress sends these functions to the browser as
 * text: they may use nothing from outside.
 */

/** A code such as `LOCK_TIMEOUT` or `could-not-serialize` is found whole and by its parts. */
export function tokenize(text: string): string[] {
  const words = text.match(/[\p{L}\p{N}_$]+/gu) ?? []
  return words.flatMap((word) =>
    word.includes('_') ? [word, ...word.split('_').filter((part) => part !== '')] : [word],
  )
}

/** Words shorter than this have to be written right. */
export const searchOptions = {
  prefix: (term: string): boolean => term.length > 2,
  fuzzy: (term: string): number | boolean => (term.length > 4 && !/\d/.test(term) ? 0.2 : false),
  boost: { title: 6, titles: 2, text: 1 },
  combineWith: 'AND' as const,
  // Who asks wants to be told, before the history of the code and the reference of its types.
  boostDocument: (id: unknown): number =>
    /\/(?:api\/|CHANGELOG|ARCHITECTURE|CONTRIBUTING)/.test(String(id)) ? 0.3 : 1,
}
