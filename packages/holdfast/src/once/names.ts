import { createHash } from 'node:crypto'
import { isAnyArrayBuffer, isDataView } from 'node:util/types'
import { holdfastError } from '../core/errors.ts'
import { isName, mostNameBytes } from '../core/storable.ts'

/** A key or scope as text that is stored exactly as given. */
export function keyText(value: unknown, field: 'key' | 'scope'): string {
  if (isName(value)) return value
  throw holdfastError('ONCE_KEY_INVALID', {
    details: {
      field,
      subject: `${field} must be a text of 1 to ${mostNameBytes} bytes without NUL`,
    },
  })
}

/**
 * SHA-256 of a payload: text and bytes as they are, data as JSON with its keys in order. Fingerprints are
 * stored: what was taken by an older version must give the same one.
 *
 * @throws OPTION_INVALID
 */
export function fingerprintOf(payload: unknown, option: 'payload' | 'body' = 'payload'): string {
  try {
    return createHash('sha256').update(contentOf(payload)).digest('hex')
  } catch (cause) {
    throw holdfastError('OPTION_INVALID', {
      details: { option, subject: `${option} must be text, bytes or plain data` },
      cause,
    })
  }
}

function contentOf(payload: unknown): string | Buffer {
  if (typeof payload === 'string') {
    // Halves of characters would all be hashed alike.
    if (!payload.isWellFormed()) throw new TypeError('half a character')
    return payload
  }
  if (ArrayBuffer.isView(payload) || isAnyArrayBuffer(payload)) return bytesOf(payload)
  return JSON.stringify(payload, dataOf) ?? ''
}

/** For `JSON.stringify`, which writes buffers as `{}`. */
export function bytesAsData(_: string, value: unknown): unknown {
  return isAnyArrayBuffer(value) || isDataView(value) ? bytesOf(value).toJSON() : value
}

export function bytesOf(bytes: ArrayBufferLike | ArrayBufferView): Buffer {
  return ArrayBuffer.isView(bytes)
    ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    : Buffer.from(bytes)
}

/**
 * For `JSON.stringify`, which has called `toJSON` before. By itself it leaves out functions and symbols, and
 * writes NaN as null and a Map as `{}`: two that differ would count as the same.
 */
function dataOf(this: unknown, _: string, value: unknown): unknown {
  if (isAnyArrayBuffer(value) || isDataView(value)) return sorted(bytesAsData('', value) as object)
  if (!isData(value) || (value === undefined && Array.isArray(this)))
    throw new TypeError('neither text, bytes nor plain data')
  return typeof value !== 'object' || value === null || Array.isArray(value) ? value : sorted(value)
}

/** `undefined` is a property without a value, which JSON leaves out: the same as none. */
function isData(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value)
  if (value === null || ['string', 'boolean', 'undefined'].includes(typeof value)) return true
  if (typeof value !== 'object') return false
  return Array.isArray(value) || ArrayBuffer.isView(value) || isPlain(value)
}

/**
 * Made by `{}` or without a prototype, here or in another context; or it says itself how it is written. What else an
 * instance of a class is made of, such as private fields, nobody can see.
 */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return true
  return 'toJSON' in value && typeof value.toJSON === 'function'
}

/** The order in which properties were set is not part of what was sent. */
function sorted(value: object): object {
  return Object.fromEntries(
    Object.entries(value).toSorted(([left], [right]) => (left < right ? -1 : 1)),
  )
}
