/**
 * Operators of PostgreSQL's own, for every statement of ours: what `=` alone means is looked up along the search_path
 * of whoever runs it, by the types on both sides, and others may have put an operator of theirs there. All of them
 * bind equally, tighter than AND and IS and weaker than a cast: what they combine stands in parentheses.
 */

const operator = (sign: string): string => `OPERATOR(pg_catalog.${sign})`

export const eq: string = operator('=')
export const ne: string = operator('<>')
export const lt: string = operator('<')
export const le: string = operator('<=')
export const gt: string = operator('>')
export const ge: string = operator('>=')
export const plus: string = operator('+')
export const minus: string = operator('-')
export const times: string = operator('*')
export const per: string = operator('/')
/** Texts, one after the other. */
export const cat: string = operator('||')
/** Like a pattern of LIKE, and not. */
export const like: string = operator('~~')
export const unlike: string = operator('!~~')
/** By a regular expression. */
export const matches: string = operator('~')
/** A part of a JSON value: as JSON, as text. */
export const jsonAt: string = operator('->')
export const jsonText: string = operator('->>')
export const shifted: string = operator('<<')
export const bitOr: string = operator('|')
export const bitAnd: string = operator('&')

/** A text, or something else where it is empty or null. `nullif` would look for an operator of its own. */
export function filled(text: string, otherwise: string): string {
  return `CASE WHEN ${text} ${ne} '' THEN ${text} ELSE ${otherwise} END`
}
