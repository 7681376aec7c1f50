import { lockKey } from '../core/locks/lock-key.ts'

/** The number that installers of a schema of this name lock. */
export function installersLock(schema: string): bigint {
  return lockKey('holdfast.schema', schema).lock.id
}
