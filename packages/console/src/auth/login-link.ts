import { randomBytes } from 'node:crypto'
import type { Identity } from '../core/identity.ts'
import { hashOf, sameSecret } from './secret.ts'
import type { KnownToken } from './tokens.ts'

/**
 * A token that logs in once, for whoever sees the terminal. When it is used there is a new one, so that a
 * link that was read by somebody else afterwards opens nothing.
 */
export class LoginLink {
  /** Whose sessions come of it. Nobody knows a token with this hash. */
  readonly owner: KnownToken
  readonly #onUse: (next: string) => void
  #token = randomBytes(32).toString('base64url')

  constructor(identity: Identity, onUse: (next: string) => void) {
    const hash = randomBytes(32)
    const fingerprint = hashOf(hash.toString('hex')).toString('base64url').slice(0, 22)
    this.owner = { identity, hash, fingerprint, expiresMs: Infinity }
    this.#onUse = onUse
  }

  get token(): string {
    return this.#token
  }

  /** Whose session it starts, if it is the token. */
  use(shown: string): KnownToken | undefined {
    if (!sameSecret(shown, this.#token)) return undefined
    this.#token = randomBytes(32).toString('base64url')
    this.#onUse(this.#token)
    return this.owner
  }
}
