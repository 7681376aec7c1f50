import { type ErrorCode, errorCodes, type HoldfastError, isHoldfastError } from 'holdfast/errors'

/** What people and scripts are told about an error: never a value, never the address of a database. */
export interface Failure {
  readonly code: string
  readonly message: string
  readonly next: string
}

/** By SQLSTATE or its class, or by the code of a socket error. */
const nextSteps: Readonly<Record<string, string>> = {
  '28': 'Check user and password of the database URL.',
  '3D': 'Create the database, or correct its name in the database URL.',
  '42501': 'Connect as the role that owns the schema.',
  '55P03':
    'Somebody holds a lock that is needed here, perhaps another installer. Try again; nothing was changed.',
  '57': 'The server ended the statement or is shutting down. Try again; nothing was changed.',
  '40': 'Others were faster. Try again; nothing was changed.',
  ERR_INVALID_URL:
    'Write the database URL as postgres://user:password@host:5432/database, with special characters percent-encoded.',
}
/** Where the library says what to do in code, and whoever typed a command has none. */
const ownSteps: Readonly<Partial<Record<ErrorCode, string>>> = {
  SCHEMA_MISSING:
    'Run `holdfast migrate`. If the schema has another name than holdfast, pass --schema <name>. If it is installed, this role lacks rights: connect as its owner, or run what `holdfast grants` prints.',
}
const unreachable = 'Check host and port of the database URL, and that the server is running.'

export function failureOf(error: unknown): Failure {
  // Why there is no connection is what people can do something about.
  if (isHoldfastError(error, 'CONNECTION_UNAVAILABLE') && error.cause !== undefined) {
    return failureOf(error.cause)
  }
  if (isHoldfastError(error)) {
    const { message, next } = parted(error)
    return { code: error.code, message: `${message}${reasonOf(error.cause)}`, next }
  }
  const { code } = plain(error)
  const next = nextSteps[code] ?? (isState(code) ? nextSteps[code.slice(0, 2)] : undefined)
  const lost = /^E[A-Z]+$/.test(code) || /timeout|terminated/.test(plain(error).message)
  return { code, message: said(error), next: next ?? (lost ? unreachable : 'Nothing was changed.') }
}

/** The message of an error of the library ends with the next step. */
function parted({ code, message }: HoldfastError): Pick<Failure, 'message' | 'next'> {
  // Another installed copy may have codes that this one has not.
  const entries: Readonly<Partial<Record<ErrorCode, { readonly next: string }>>> = errorCodes
  const next = entries[code]?.next
  if (next === undefined || !message.endsWith(` ${next}`)) return { message, next: '' }
  return { message: message.slice(0, -next.length - 1), next: ownSteps[code] ?? next }
}

/** Passes on what PostgreSQL said; whatever else our functions raise, the message has in words of its own. */
const passedOn = 'HF005'

/** Why, in the words of whoever said so. */
function reasonOf(cause: unknown): string {
  if (cause === undefined) return ''
  if (isHoldfastError(cause)) return reasonOf(cause.cause)
  const { code } = plain(cause)
  if (!isState(code)) return `\nReason: ${said(cause)}`
  return code.startsWith('HF') && code !== passedOn ? '' : `\nPostgreSQL said: ${said(cause)}`
}

/** What the server says about data (classes 22 and 23) may quote it. */
function said(error: unknown): string {
  const { code, message } = plain(error)
  return isState(code) && /^2[23]/.test(code) ? `SQLSTATE ${code}` : message
}

/** Codes of sockets have no digit: EPIPE is none. */
function isState(code: string): boolean {
  return /^(?=.*[0-9])[0-9A-Z]{5}$/.test(code)
}

/** A refused connection to a name with several addresses has its reasons one level down. */
function plain(error: unknown): { readonly code: string; readonly message: string } {
  const { code, message, errors } = (error ?? {}) as {
    readonly code?: unknown
    readonly message?: unknown
    readonly errors?: readonly unknown[]
  }
  if (message === '' && errors !== undefined && errors.length > 0) return plain(errors[0])
  return { code: typeof code === 'string' ? code : 'FAILED', message: String(message ?? error) }
}
