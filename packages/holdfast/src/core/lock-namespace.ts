import { holdfastError } from './errors.ts'
import { type KeyPart, type LockKey, lockKey } from './lock-key.ts'

/** A declared namespace: call it with the parts to get a key. */
export interface LockNamespace {
  (...parts: readonly KeyPart[]): LockKey
  readonly namespace: string
  readonly about: string
}

const declared = new Map<string, LockNamespace>()

/**
 * Declares a lock namespace, once per process, with a sentence for the people on call.
 *
 * @example
 * export const imageUpload = lockNamespace('image-upload', 'One upload per user at a time')
 * await hf.guard(imageUpload(userId), body)
 * @throws LOCK_NAMESPACE_DUPLICATE
 */
export function lockNamespace(namespace: string, about: string): LockNamespace {
  if (declared.has(namespace)) {
    throw holdfastError('LOCK_NAMESPACE_DUPLICATE', { details: { subject: namespace } })
  }
  const made: LockNamespace = Object.assign(
    (...parts: readonly KeyPart[]) => lockKey(namespace, ...parts),
    { namespace, about },
  )
  declared.set(namespace, made)
  return made
}

/** Every declared namespace, sorted by name: the list for an operations playbook. */
export function lockNamespaces(): readonly {
  readonly namespace: string
  readonly about: string
}[] {
  return [...declared.values()]
    .map(({ namespace, about }) => ({ namespace, about }))
    .toSorted((a, b) => (a.namespace < b.namespace ? -1 : 1))
}
