import { createHash } from 'node:crypto'
import { holdfastError } from '../core/errors.ts'

const mostBytes = 512

/** A key or scope as text that is stored exactly as given. */
export function keyText(value: unknown, field: 'key' | 'scope'): string {
  const fits =
    typeof value === 'string' &&
    value !== '' &&
    value.isWellFormed() &&
    !value.includes('\0') &&
    Buffer.byteLength(value) <= mostBytes
  if (fits) return value
  throw holdfastError('ONCE_KEY_INVALID', {
    details: { field, subject: `${field} must be a text of 1 to ${mostBytes} bytes without NUL` },
  })
}

/** SHA-256 of a payload: text and bytes as they are, data as JSON with its keys in order. */
export function fingerprintOf(payload: unknown): string {
  const hash = createHash('sha256')
  if (typeof payload === 'string' || payload instanceof Uint8Array)
    return hash.update(payload).digest('hex')
  try {
    return hash.update(JSON.stringify(payload, sorted) ?? '').digest('hex')
  } catch (cause) {
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'payload', subject: 'payload must be text, bytes or plain data' },
      cause,
    })
  }
}

/** The order in which properties were set is not part of what was sent. */
function sorted(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(
    Object.entries(value).toSorted(([left], [right]) => (left < right ? -1 : 1)),
  )
}
