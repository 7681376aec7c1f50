import { hash } from 'node:crypto'
import { bucketOf } from '../core/bucket.ts'
import { Recent } from '../core/recent.ts'
import type { LimitKey } from '../engines/postgres/rate-limit/rate-limit.ts'

/** Hashing costs more than remembering. */
const mostKeys = 100_000

/** The keys of one limit as the table has them. */
export class LimitKeys {
  /** Name and window: a limit with another window counts in rows of its own. */
  readonly #limit: string
  /** Where the scope is the key. */
  readonly #known = new Recent<string, LimitKey>(mostKeys)

  constructor(name: string, window: string) {
    this.#limit = `${name.length}:${name}${window.length}:${window}`
  }

  of(key: string, scope: string): LimitKey {
    if (scope !== key) return this.#hashed(key, scope)
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const made = this.#hashed(key, scope)
    this.#known.set(key, made)
    return made
  }

  #hashed(key: string, scope: string): LimitKey {
    const hex = hash('sha256', `${scope.length}:${scope}${this.#limit}${key}`)
    const uuid = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`
    return { bucket: bucketOf(scope), uuid, words: wordsOf(hex) }
  }
}

function wordsOf(hex: string): LimitKey['words'] {
  const word = (from: number): number => Number.parseInt(hex.slice(from, from + 8), 16)
  return { a: word(0), b: word(8), c: word(16), d: word(24) }
}

/** The order of the primary key, in which rows are locked. */
export function byPlace(one: LimitKey, other: LimitKey): number {
  return one.bucket - other.bucket || (one.uuid < other.uuid ? -1 : one.uuid > other.uuid ? 1 : 0)
}
