import { holdfastError } from '../core/errors.ts'

/**
 * Many clients send a statement only when somebody waits for it, so one that a body returns in a list or as a property
 * was never sent. Such a statement is a promise of a kind of its own; what is a plain promise has begun.
 *
 * @throws TX_UNAWAITED
 */
export function awaited<T>(result: T): T {
  if (partsOf(result).some(isLazy)) throw holdfastError('TX_UNAWAITED')
  return result
}

function partsOf(result: unknown): readonly unknown[] {
  if (Array.isArray(result)) return result
  if (!isPlain(result)) return []
  // A getter may belong to an ORM, and load something.
  return Object.values(Object.getOwnPropertyDescriptors(result)).map(
    ({ value }) => value as unknown,
  )
}

function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

function isLazy(value: unknown): boolean {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  if (Object.getPrototypeOf(value) === Promise.prototype) return false
  return typeof (value as { readonly then?: unknown }).then === 'function'
}
