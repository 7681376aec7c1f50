import { hash } from 'node:crypto'
import { holdfastError } from '../errors.ts'
import { isStorable } from '../storable.ts'
import type { BigintKey, KeyPart, LockId, LockKey } from './wanted-lock.ts'

/**
 * How a key becomes the number PostgreSQL locks. The version is part of the hash, so a later
 * scheme cannot be mistaken for this one; changing it breaks exclusion during a rolling deploy
 * and is a major release.
 */
const scheme = 'holdfast/v1'

/**
 * Names a lock: a namespace and at least one part, hashed to 64 bits. Parts cannot run into each
 * other: `('a', 'b', 'c')` and `('a', 'b:c')` are different locks.
 *
 * @example lockKey('image-upload', userId)
 * @throws LOCK_KEY_INVALID
 */
export function lockKey(namespace: string, ...parts: readonly KeyPart[]): BigintKey {
  assertNamespace(namespace)
  if (parts.length === 0) throw partNeeded()
  let hashed = `${scheme}\0${namespace.length}:${namespace}`
  let name = namespace
  for (const part of parts) {
    const text = partText(part)
    hashed += `\0${text.length}:${text}`
    name += `:${text}`
  }
  const id = BigInt.asIntN(64, BigInt(`0x${hash('sha256', hashed).slice(0, 16)}`))
  return { name, namespace, lock: { kind: 'bigint', id }, scope: name }
}

/**
 * The same lock, kept where that scope is: next to the quota, the stock or the rows that it is about.
 * Only counts where there are several primaries; then whoever takes the lock has to say so.
 *
 * @example await hf.guard(inScope(lockKey('image-upload', userId), userId), body)
 */
export function inScope<K extends LockKey>(key: K, scope: string): K {
  return { ...key, scope }
}

/** @throws LOCK_KEY_INVALID */
export function assertNamespace(namespace: unknown): void {
  if (typeof namespace !== 'string' || namespace === '') throw partNeeded()
  assertStorable(namespace)
}

function partNeeded(): Error {
  return holdfastError('LOCK_KEY_INVALID', {
    details: { subject: 'a namespace and a part are needed' },
  })
}

function assertStorable(text: unknown): string {
  if (isStorable(text)) return text
  throw holdfastError('LOCK_KEY_INVALID', {
    details: { subject: 'a text must be well-formed and without NUL' },
  })
}

/** Whether somebody made it with `lockKey` or `legacyKey`, here or in another installed copy. */
export function isLockKey(value: unknown): value is LockKey {
  if (typeof value !== 'object' || value === null) return false
  const { name, namespace, scope, lock } = value as Partial<LockKey>
  const isNamed = [name, namespace, scope].every(isStorable)
  return isNamed && typeof lock === 'object' && lock !== null && isLockId(lock)
}

function isLockId(lock: LockId): boolean {
  switch (lock.kind) {
    case 'bigint':
      return typeof lock.id === 'bigint'
    case 'hashtext':
      return typeof lock.text === 'string'
    case 'pair':
      return Number.isInteger(lock.high) && Number.isInteger(lock.low)
    case 'pair-hashtext':
      return Number.isInteger(lock.high) && typeof lock.text === 'string'
    default:
      return false
  }
}

/** What locks are called where people read: without their keys, which may be somebody's name. */
export function subjectOf(locks: readonly { readonly key: LockKey }[]): string {
  const more = locks.length - 1
  return `${locks[0]?.key.namespace ?? ''}${more > 0 ? ` +${more}` : ''}`
}

function partText(part: unknown): string {
  if (typeof part === 'string' && part.length > 0) return assertStorable(part)
  if (typeof part === 'bigint' || Number.isSafeInteger(part)) return String(part)
  throw holdfastError('LOCK_KEY_INVALID', {
    details: { subject: 'a part must be a non-empty string, a safe integer or a bigint' },
  })
}

/**
 * Keys equal to those of hand-written SQL, so that old and new code exclude each other while a
 * migration is under way. Take the legacy key and the new one together until the old code is gone.
 *
 * @example await hf.guard([legacyKey.hashtext(userId), lockKey('image-upload', userId)], body)
 */
export const legacyKey: {
  /** `pg_advisory_xact_lock(hashtext(text))` */
  hashtext(text: string): LockKey
  /** `pg_advisory_xact_lock(id)` */
  bigint(id: bigint | number): LockKey
  /** `pg_advisory_xact_lock(high, low)`; `low` may be `{ hashtext: text }` */
  pair(high: number, low: number | { readonly hashtext: string }): LockKey
} = {
  hashtext: (text) => legacy(`hashtext(${assertStorable(text)})`, { kind: 'hashtext', text }),
  bigint(given) {
    const id = int8(given)
    return legacy(String(id), { kind: 'bigint', id })
  },
  pair(first, second) {
    const high = int4(first)
    if (typeof second !== 'object' || second === null) {
      const low = int4(second)
      return legacy(`${high},${low}`, { kind: 'pair', high, low })
    }
    const text = assertStorable(second.hashtext)
    return legacy(`${high},hashtext(${text})`, { kind: 'pair-hashtext', high, text })
  },
}

function legacy(text: string, lock: LockId): LockKey {
  const name = `legacy:${text}`
  return { name, namespace: 'legacy', lock, scope: name }
}

function int4(value: number): number {
  return Number(int(wholeOf(value), 32))
}

function int8(value: bigint | number): bigint {
  return int(typeof value === 'bigint' ? value : wholeOf(value), 64)
}

function wholeOf(value: number): bigint {
  if (Number.isInteger(value)) return BigInt(value)
  throw holdfastError('LOCK_KEY_INVALID', { details: { subject: 'an integer is needed' } })
}

function int(value: bigint, bits: number): bigint {
  if (BigInt.asIntN(bits, value) !== value) {
    throw holdfastError('LOCK_KEY_INVALID', { details: { subject: `does not fit ${bits} bits` } })
  }
  return value
}
