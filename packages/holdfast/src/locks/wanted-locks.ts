import { holdfastError } from '../core/errors.ts'
import { isLockKey } from '../core/locks/lock-key.ts'
import type { LockKey, WantedLock } from '../core/locks/wanted-lock.ts'

/** A key alone is wanted exclusively; `shared(key)` says otherwise. */
export type LockInput = LockKey | WantedLock

/** @throws LOCK_KEY_INVALID */
export function wantedLocks(keys: LockInput | readonly LockInput[]): readonly WantedLock[] {
  const list = Array.isArray(keys) ? (keys as readonly LockInput[]) : [keys as LockInput]
  if (list.length === 0) {
    throw holdfastError('LOCK_KEY_INVALID', { details: { subject: 'no key was given' } })
  }
  return list.map(wantedLock)
}

function wantedLock(input: unknown): WantedLock {
  if (isLockKey(input)) return { key: input, mode: 'exclusive' }
  const { key, mode } = (input ?? {}) as Partial<WantedLock>
  if (isLockKey(key) && (mode === 'shared' || mode === 'exclusive')) return { key, mode }
  const subject =
    typeof input === 'string'
      ? 'a text is no key: name its parts, as in lockKey(namespace, id)'
      : 'a key must be what lockKey, legacyKey or shared gives'
  throw holdfastError('LOCK_KEY_INVALID', { details: { subject } })
}
