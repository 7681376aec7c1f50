import { type ErrorCode, errorCodes, type HoldfastError, isHoldfastError } from 'holdfast/errors'
import { grants } from 'holdfast/schema'
import { isState, messageOf, nextOf, plain } from './failure-kinds.ts'

/** What people and scripts are told about an error: never a value, never the address of a database. */
export interface Failure {
  readonly code: string
  readonly message: string
  readonly next: string
}

/** Did what it should. */
export const done = 0

/** Failed, or found something. */
export const failed = 1

/** The command line was not understood. */
export const misused = 2

/** Nothing was changed, because --yes is missing. */
export const unconfirmed = 3

/** The command line was not understood; the message says why. */
export class Misuse extends Error {}

/** It failed for a reason of the command's own, such as a name that nobody knows. */
export class Failed extends Error {
  readonly failure: Failure
  readonly exitCode: number

  constructor(failure: Failure, exitCode: number = failed) {
    super(failure.message)
    this.failure = failure
    this.exitCode = exitCode
  }
}

/** What was named is not there. */
export function notFound(message: string, next: string): Failed {
  return new Failed({ code: 'NOT_FOUND', message, next })
}

/** Where the library says what to do in code, and whoever typed a command has none. */
const ownSteps: Readonly<Partial<Record<ErrorCode, string>>> = {
  SCHEMA_MISSING:
    'Run `holdfast migrate`. If the schema has another name than holdfast, pass --schema <name>.',
}

/** With what to do about it: where no database is talked to, nothing about one. */
export function failureOf(error: unknown, ofDatabase = true): Failure {
  // Why there is no connection is what people can do something about.
  if (isHoldfastError(error, 'CONNECTION_UNAVAILABLE') && error.cause !== undefined) {
    return failureOf(error.cause)
  }
  if (isHoldfastError(error, 'SCHEMA_MISSING') && plain(error.cause).code === '42501') {
    return rightMissing(plain(error.cause).message)
  }
  if (isHoldfastError(error, 'SCHEMA_FAILED') && error.details.sqlState === '42501') {
    return rightMissing(plain(error.cause).message, mayMigrate)
  }
  if (isHoldfastError(error)) {
    const { message, next } = parted(error)
    return { code: error.code, message: `${message}${reasonOf(error.cause)}`, next }
  }
  const known = plain(error)
  return { code: known.code, message: said(error), next: nextOf(known, ofDatabase) }
}

const mayMigrate =
  'Connect as the role that owns the schema. To install it, a role needs CREATE on the database: GRANT CREATE ON DATABASE <database> TO <role>.'

/** Who may give the role the right depends on what the right is; `next` where that is known. */
function rightMissing(said: string, known?: string): Failure {
  const [, kind = '', name = ''] = /denied for (\w+(?: \w+)?) (\S+)$/.exec(said) ?? []
  const right = rights[kind]
  const isGranted = kind === 'schema' || grants({ role: 'app' }).includes(`."${name}"`)
  const owner = 'Connect as the role that owns the schema'
  const next =
    known ??
    (right === undefined || isGranted
      ? `Run what \`holdfast grants --role <role>\` prints, as the role that owns the schema.`
      : `${owner}: this is left to it, and \`holdfast grants\` does not give it to other roles.`)
  const lacking =
    right === undefined || known !== undefined
      ? ''
      : `This role has no ${right} on ${kind} ${name}.\n`
  return { code: 'RIGHT_MISSING', message: `${lacking}PostgreSQL said: ${said}`, next }
}

/** What is needed of each kind of object, in the words of PostgreSQL. */
const rights: Readonly<Record<string, string>> = {
  schema: 'USAGE',
  function: 'EXECUTE',
  table: 'SELECT',
  view: 'SELECT',
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

/** What happened; never a value, and nothing of a database URL. */
function said(error: unknown): string {
  return messageOf(plain(error))
}
