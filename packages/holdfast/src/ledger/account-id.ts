import { hash } from 'node:crypto'
import { bucketOf } from '../core/bucket.ts'
import { Recent } from '../core/recent.ts'
import { type Words, wordsOf } from '../engines/postgres/sql/uuid-words.ts'
import type { Line } from './operation.ts'

/** How an account is found in the database; see `key_account` and `bucket_of` in `sql/internal`. */
export interface AccountId {
  /** 0–4095, of the scope: what a sharded driver routes by. */
  readonly bucket: number
  readonly base: string
  /** The same as four numbers of 32 bits. */
  readonly words: Words
}

/** Hashing costs more than remembering. Half of them are kept for sure: 100,000 keys in turn are all remembered. */
const mostKeys = 250_000
const mostBooks = 100

/** By book, where the scope is the key: its name need not be put together then. */
const byKey = new Map<string, Recent<string, AccountId>>()
const byName = new Recent<string, AccountId>(mostKeys)

export function accountId(scope: string, book: string, key: string): AccountId {
  if (scope !== key) {
    const name = fullName(scope, book, key)
    return byName.get(name) ?? remembered(byName, name, scope, name)
  }
  let memory = byKey.get(book)
  if (memory === undefined) {
    if (byKey.size >= mostBooks) byKey.clear()
    memory = new Recent(mostKeys)
    byKey.set(book, memory)
  }
  return memory.get(key) ?? remembered(memory, key, scope, fullName(scope, book, key))
}

function remembered(
  memory: Recent<string, AccountId>,
  key: string,
  scope: string,
  name: string,
): AccountId {
  const base = hashName(name)
  const id = { bucket: bucketOf(scope), base, words: wordsOf(base) as Words }
  memory.set(key, id)
  return id
}

function fullName(scope: string, book: string, key: string): string {
  return `${codePoints(scope)}:${scope}${codePoints(book)}:${book}${codePoints(key)}:${key}`
}

/** The account of a key whose scope is the key itself, if it was asked for before: then the key is a valid one. */
export function knownAccount(book: string, key: string): AccountId | undefined {
  return byKey.get(book)?.get(key)
}

const canonicalUuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** An operation id as the database remembers it: a UUID in lower case, anything else by its hash. */
export function operationUuid(operationId: string): string {
  if (canonicalUuid.test(operationId)) return operationId
  return isOtherCase(operationId) ? operationId.toLowerCase() : hashName(operationId)
}

/**
 * What versions before 0.2 remembered it as, if that is something else: they hashed a UUID that was not in lower case
 * like any other text.
 */
export function earlierUuid(operationId: string): string | undefined {
  return isOtherCase(operationId) ? hashName(operationId) : undefined
}

/** The operation that a line is about: one that gives back, or that voids a grant. */
export function refTo(operationId: string): Pick<Line, 'ref' | 'earlierRef'> {
  return { ref: operationUuid(operationId), earlierRef: earlierUuid(operationId) }
}

function isOtherCase(text: string): boolean {
  if (text.length !== 36) return false
  const lower = text.toLowerCase()
  return lower !== text && canonicalUuid.test(lower)
}

/** The hold an operation makes. The bucket in front lets any process find it by its id alone. */
export function holdIdOf(bucket: number, owner: string, operation: string): string {
  return `${bucket.toString(16).padStart(3, '0')}-${hashName(`${owner}:${operation}`)}`
}

const holdPattern = /^[0-9a-f]{3}-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export function isHoldId(text: unknown): text is string {
  return typeof text === 'string' && holdPattern.test(text)
}

function hashName(name: string): string {
  const hex = hash('sha256', name)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`
}

/** PostgreSQL counts characters, JavaScript UTF-16 units. */
function codePoints(text: string): number {
  let count = text.length
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at)
    if (unit >= 0xd800 && unit <= 0xdbff) count -= 1
  }
  return count
}
