import { randomBytes } from 'node:crypto'
import type { Identity } from '../core/identity.ts'
import { hashOf, sameSecret } from './secret.ts'
import type { KnownToken } from './tokens.ts'

/**
 * A token that logs in once, for whoever sees the terminal. There is none until one is asked for, and none
 * again after it was used, so that a link that was read by somebody else afterwards opens nothing.
 */
export class LoginLink {
  /** Whose sessions come of it. Nobody knows a token with this hash. */
  readonly owner: KnownToken
  readonly #onUse: () => void
  #token: string | undefined

  constructor(identity: Identity, onUse: () => void) {
    const hash = randomBytes(32)
    const fingerprint = hashOf(hash.toString('hex')).toString('base64url').slice(0, 22)
    this.owner = { identity, hash, fingerprint, expiresMs: Infinity }
    this.#onUse = onUse
  }

  /** A new one; the one before it opens nothing any more. */
  next(): string {
    this.#token = randomBytes(32).toString('base64url')
    return this.#token
  }

  /** Whose session it starts, if it is the token. */
  use(shown: string): KnownToken | undefined {
    if (this.#token === undefined || !sameSecret(shown, this.#token)) return undefined
    this.#token = undefined
    this.#onUse()
    return this.owner
  }
}
