import { hash } from 'node:crypto'
import { holdfastError } from './errors.ts'

/**
 * How a key becomes the number PostgreSQL locks. The version is part of the hash, so a later
 * scheme cannot be mistaken for this one; changing it breaks exclusion during a rolling deploy
 * and is a major release.
 */
const scheme = 'holdfast/v1'

/** One piece of a key. `1`, `1n` and `'1'` are the same piece. */
export type KeyPart = string | number | bigint

/** Which number PostgreSQL locks. `hashtext` is worked out by the server, which owns that hash. */
export type LockId =
  | { readonly kind: 'bigint'; readonly id: bigint }
  | { readonly kind: 'hashtext'; readonly text: string }
  | { readonly kind: 'pair'; readonly high: number; readonly low: number }
  | { readonly kind: 'pair-hashtext'; readonly high: number; readonly text: string }

/** A key that is hashed here: its number is known before the server is asked. */
export interface BigintKey extends LockKey {
  readonly lock: { readonly kind: 'bigint'; readonly id: bigint }
}

/** A lock by name. Build it with `lockKey` or, for keys of hand-written SQL, `legacyKey`. */
export interface LockKey {
  /** Readable name, as shown in pg_stat_activity and in errors. */
  readonly name: string
  readonly namespace: string
  readonly lock: LockId
  /** What a sharded driver routes by; by default the key itself. */
  readonly scope: string
}

/**
 * Names a lock: a namespace and at least one part, hashed to 64 bits. Parts cannot run into each
 * other: `('a', 'b', 'c')` and `('a', 'b:c')` are different locks.
 *
 * @example lockKey('image-upload', userId)
 * @throws LOCK_KEY_INVALID
 */
export function lockKey(namespace: string, ...parts: readonly KeyPart[]): BigintKey {
  if (namespace.length === 0 || parts.length === 0) {
    throw holdfastError('LOCK_KEY_INVALID', {
      details: { subject: 'a namespace and a part are needed' },
    })
  }
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

function partText(part: unknown): string {
  if (typeof part === 'string' && part.length > 0) return part
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
  hashtext: (text) => legacy(`hashtext(${text})`, { kind: 'hashtext', text }),
  bigint: (id) => legacy(String(id), { kind: 'bigint', id: int(BigInt(id), 64) }),
  pair: (high, low) =>
    typeof low === 'number'
      ? legacy(`${high},${low}`, { kind: 'pair', high: int4(high), low: int4(low) })
      : legacy(`${high},hashtext(${low.hashtext})`, {
          kind: 'pair-hashtext',
          high: int4(high),
          text: low.hashtext,
        }),
}

function legacy(text: string, lock: LockId): LockKey {
  const name = `legacy:${text}`
  return { name, namespace: 'legacy', lock, scope: name }
}

function int4(value: number): number {
  if (!Number.isInteger(value)) {
    throw holdfastError('LOCK_KEY_INVALID', { details: { subject: 'an integer is needed' } })
  }
  return Number(int(BigInt(value), 32))
}

function int(value: bigint, bits: number): bigint {
  if (BigInt.asIntN(bits, value) !== value) {
    throw holdfastError('LOCK_KEY_INVALID', { details: { subject: `does not fit ${bits} bits` } })
  }
  return value
}
