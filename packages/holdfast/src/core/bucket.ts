import { hash } from 'node:crypto'

/** How many there are; fixed, so that a scope keeps its bucket however many servers there will be. */
export const bucketCount = 4_096

/** What a statement touches: a scope, or its bucket where that is known already. */
export type Scope = string | number

/** The last one: an operation asks for its bucket several times in a row, and hashing costs more than comparing. */
let last = { scope: '', bucket: hashed('') }

/** The bucket of a scope, by which its server is found: the first 12 bits of its SHA-256. */
export function bucketOf(scope: string): number {
  if (scope !== last.scope) last = { scope, bucket: hashed(scope) }
  return last.bucket
}

function hashed(scope: string): number {
  return Number.parseInt(hash('sha256', scope).slice(0, 3), 16)
}

/** The buckets of several scopes, each once. */
export function bucketsOf(scopes: readonly Scope[]): readonly number[] {
  const [only] = scopes
  if (scopes.length === 1 && only !== undefined) return [numberOf(only)]
  return [...new Set(scopes.map(numberOf))]
}

function numberOf(scope: Scope): number {
  return typeof scope === 'number' ? scope : bucketOf(scope)
}
