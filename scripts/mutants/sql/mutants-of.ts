import { hash } from 'node:crypto'
import { type Change, nextOf, type SqlMutant } from './change.ts'
import { conflictChanges, constraintChanges, lockChanges, orderChanges } from './clauses.ts'
import { conditionChanges } from './conditions.ts'
import { boundChanges, comparisonChanges, constantChanges } from './signs.ts'
import { type Token, tokensOf } from './tokens.ts'

/** Made in the body of a function, in a view, and in a CHECK. */
const ofCode = [
  conditionChanges,
  comparisonChanges,
  orderChanges,
  lockChanges,
  boundChanges,
  constantChanges,
  conflictChanges,
]

/** Every change of an SQL file, in the order of the text. */
export function mutantsOf(file: string, text: string): SqlMutant[] {
  const tokens = tokensOf(text)
  const isCode = codeOf(file, tokens)
  const changes = [
    ...ofCode.flatMap((changesOf) => changesOf(text, tokens)).filter(isCode),
    ...(/^migrations\b/.test(file) ? constraintChanges(text, tokens) : []),
  ]
  const once = new Map(
    changes.map((change) => [`${change.start}-${change.end} ${change.replacement}`, change]),
  )
  return [...once.values()]
    .toSorted((one, other) => one.start - other.start || one.end - other.end)
    .map((change) => ({
      ...change,
      file,
      line: text.slice(0, change.start).split('\n').length,
      original: text.slice(change.start, change.end),
    }))
}

/** Whether a change is where something is decided: headers of functions and definitions of tables are not. */
function codeOf(file: string, tokens: readonly Token[]): (change: Change) => boolean {
  if (/^views\b/.test(file)) return () => true
  const parts: { start: number; end: number }[] = tokens.filter(({ body }) => body)
  for (const [at, { text, depth, body }] of tokens.entries()) {
    const [opening] = [tokens[at + 1]]
    if (text !== 'CHECK' || body || opening?.text !== '(') continue
    const close = nextOf(tokens, at + 2, depth, (token) => token.text === ')')
    parts.push({ start: opening.end, end: tokens[close]?.start ?? opening.end })
  }
  return ({ start }) => parts.some((part) => part.start <= start && start < part.end)
}

/**
 * So many percent of the mutants, in an order that only the seed decides: a run that is stopped has seen a fair part.
 * By what is written around each, so that a place that moves stays in or out.
 */
export function sampled(mutants: readonly SqlMutant[], percent: number, seed: number): SqlMutant[] {
  const seen = new Map<string, number>()
  return mutants
    .map((mutant) => {
      const what = `${mutant.file} ${mutant.kind} ${mutant.original} ${mutant.replacement}`
      const nth = seen.get(what) ?? 0
      seen.set(what, nth + 1)
      const rank = Number.parseInt(hash('sha256', `${seed} ${nth} ${what}`).slice(0, 8), 16)
      return { mutant, rank }
    })
    .filter(({ rank }) => rank < (percent / 100) * 2 ** 32)
    .toSorted((one, other) => one.rank - other.rank)
    .map(({ mutant }) => mutant)
}
