import type { Identity } from '../core/identity.ts'
import { ConsoleOptionError } from '../core/option-error.ts'
import type { Action, Role } from '../core/wire.ts'
import { hashOf, sameSecret } from './secret.ts'

/** A token that opens the console. */
export interface ConsoleToken {
  /** Whose it is, for the audit; not a secret. */
  readonly name: string
  readonly role: Role
  /** The token itself, at least 20 characters; `openssl rand -base64 32` makes a good one. */
  readonly token?: string
  /** Instead of it, its SHA-256 in hexadecimal, so that the configuration holds no secret. */
  readonly tokenHash?: string
  readonly expiresAt?: Date | string
  /** Which of the console's actions this token may use. @defaultValue all of them */
  readonly actions?: readonly Action[]
}

/** A token as it is kept. */
export interface KnownToken {
  readonly identity: Identity
  readonly hash: Buffer
  /** Ties a session to its token: who takes the token away ends its sessions. */
  readonly fingerprint: string
  readonly expiresMs: number
}

const shortest = 20
const roles: readonly string[] = ['metrics', 'view', 'operate'] satisfies Role[]

/** Checks tokens and forgets their texts. */
export function knownTokens(tokens: readonly ConsoleToken[]): readonly KnownToken[] {
  const names = new Set<string>()
  return tokens.map(({ name, role, token, tokenHash, expiresAt, actions }) => {
    const wrong = (what: string): ConsoleOptionError =>
      new ConsoleOptionError(`auth.tokens: ${what}`)
    if (typeof name !== 'string' || !/^[\w .@-]{1,60}$/.test(name)) {
      throw wrong('a name is 1 to 60 letters, digits, spaces and any of _ . @ -')
    }
    if (names.has(name)) throw wrong(`the name ${name} is there twice`)
    names.add(name)
    if (!roles.includes(role)) throw wrong(`${name} needs a role: metrics, view or operate`)
    if ((token === undefined) === (tokenHash === undefined)) {
      throw wrong(`${name} needs either token or tokenHash`)
    }
    if (token !== undefined && token.length < shortest) {
      throw wrong(
        `the token of ${name} is shorter than ${shortest} characters and could be guessed`,
      )
    }
    if (tokenHash !== undefined && !/^[0-9a-f]{64}$/i.test(tokenHash)) {
      throw wrong(`the tokenHash of ${name} is no SHA-256 in hexadecimal`)
    }
    const expiresMs = expiresAt === undefined ? Infinity : new Date(expiresAt).getTime()
    if (Number.isNaN(expiresMs)) throw wrong(`expiresAt of ${name} is no moment`)
    const hash = token === undefined ? Buffer.from(String(tokenHash), 'hex') : hashOf(token)
    return {
      identity: { name, role, ...(actions === undefined ? {} : { actions }) },
      hash,
      fingerprint: hashOf(`${hash.toString('hex')} ${name} ${role}`)
        .toString('base64url')
        .slice(0, 22),
      expiresMs,
    }
  })
}

/** The token that was shown. All are compared, whichever it is. */
export function findToken(tokens: readonly KnownToken[], shown: string): KnownToken | undefined {
  const hash = hashOf(shown)
  let found: KnownToken | undefined
  for (const token of tokens) if (sameSecret(token.hash, hash)) found = token
  return found
}
