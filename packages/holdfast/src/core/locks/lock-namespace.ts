import { holdfastError } from '../errors.ts'
import { assertText } from '../options/given.ts'
import { assertNamespace, lockKey } from './lock-key.ts'
import { processWide } from '../process-wide.ts'
import type { KeyPart, LockKey } from './wanted-lock.ts'

/** A declared namespace: call it with the parts to get a key. */
export interface LockNamespace {
  (...parts: readonly KeyPart[]): LockKey
  readonly namespace: string
  readonly about: string
}

const declared = /* @__PURE__ */ processWide('namespaces/1', () => new Map<string, LockNamespace>())

/**
 * Declares a lock namespace, with a sentence for the people on call. The same name with the same sentence is the
 * same namespace, so that a module may be loaded again; with another sentence it is refused.
 *
 * @example
 * export const imageUpload = lockNamespace('image-upload', 'One upload per user at a time')
 * await hf.guard(imageUpload(userId), body)
 * @throws LOCK_NAMESPACE_DUPLICATE, LOCK_KEY_INVALID, OPTION_INVALID
 */
export function lockNamespace(namespace: string, about: string): LockNamespace {
  assertNamespace(namespace)
  assertText(about ?? null, 'about')
  const known = declared.get(namespace)
  if (known?.about === about) return known
  if (known !== undefined)
    throw holdfastError('LOCK_NAMESPACE_DUPLICATE', { details: { subject: namespace } })
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
