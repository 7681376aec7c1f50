import { isObservable } from 'rxjs'
import { UsageError } from 'holdfast/errors'

/**
 * An Observable does its work when somebody subscribes, and a generator when somebody reads: after the commit,
 * outside of the lock.
 */
export function assertDone(value: unknown): unknown {
  if (isObservable(value) || isGenerator(value))
    throw refused('a method must return what it has done, not an Observable or a generator')
  return value
}

function isGenerator(value: unknown): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    typeof (value as { next?: unknown }).next === 'function' &&
    (Symbol.asyncIterator in value || Symbol.iterator in value)
  )
}

/**
 * What is kept is kept as JSON, and everybody gets that: an instance of a class would come out without its class, so
 * that a serializer no longer knows which of its fields are secret.
 */
export function assertPlain(value: unknown): unknown {
  if (!isPlain(value, new Set()))
    throw refused('what is kept must be plain data: make an object of the fields to be shown')
  return value
}

function isPlain(value: unknown, above: Set<object>): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (value instanceof Date) return true
  // A circle is refused by whoever makes JSON of it, with an error of its own.
  if (above.has(value)) return true
  const prototype: unknown = Object.getPrototypeOf(value)
  const isKnown =
    Array.isArray(value) ||
    prototype === null ||
    Object.getPrototypeOf(prototype as object) === null
  if (!isKnown || isObservable(value)) return false
  above.add(value)
  const plain = Object.values(value).every((each) => isPlain(each, above))
  above.delete(value)
  return plain
}

function refused(subject: string): Error {
  return new UsageError('OPTION_INVALID', { details: { option: 'method', subject } })
}
