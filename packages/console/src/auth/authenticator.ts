import { type Identity, mayAs } from '../core/identity.ts'
import { Refusal, type RefusalCode } from '../core/refusals.ts'
import type { AttemptSource, FailedAttempts } from './failed-attempts.ts'
import type { LoginLink } from './login-link.ts'
import { sameSecret } from './secret.ts'
import type { Session, Sessions } from './sessions.ts'
import { findToken, type KnownToken } from './tokens.ts'

/** Who asks, and how we know. */
export interface Caller {
  readonly identity: Identity
  readonly via: 'bearer' | 'session' | 'host'
  readonly session?: Session
  /** When this stops being true, if nobody asks again. */
  readonly untilMs: number
}

/** A host application says who somebody is; undefined or null if nobody. */
export type Authenticate = (
  request: Request,
) => Identity | undefined | null | Promise<Identity | undefined | null>

export interface AuthenticatorParts {
  readonly tokens: readonly KnownToken[]
  readonly authenticate: Authenticate | undefined
  readonly loginLink: LoginLink | undefined
  readonly sessions: Sessions
  readonly attempts: FailedAttempts
  readonly now: () => number
}

/** Tells who asks. */
export class Authenticator {
  readonly #parts: AuthenticatorParts
  readonly #tokens: readonly KnownToken[]

  constructor(parts: AuthenticatorParts) {
    this.#parts = parts
    const { tokens, loginLink } = parts
    this.#tokens = loginLink === undefined ? tokens : [...tokens, loginLink.owner]
  }

  /** Without any credentials nobody can be let in, so nothing is. */
  get closed(): boolean {
    return this.#tokens.length === 0 && this.#parts.authenticate === undefined
  }

  /** @throws Refusal NOT_LOGGED_IN, TOKEN_WRONG, TOKEN_EXPIRED, SESSION_EXPIRED, TOO_MANY_ATTEMPTS */
  async callerOf(
    request: Request,
    cookies: readonly string[],
    address: string | undefined,
  ): Promise<Caller> {
    const authorization = request.headers.get('authorization')
    const bearer = /^Bearer ([\x21-\x7e]{1,512})$/i.exec(authorization ?? '')?.[1]
    // Basic and others may belong to a proxy or to the host application.
    const shown = this.#tokens.length > 0 ? bearer : undefined
    const token = shown === undefined ? undefined : this.#find(shown)
    if (token !== undefined) {
      return { identity: token.identity, via: 'bearer', untilMs: token.expiresMs }
    }
    const caller = shown === undefined ? await this.#bySession(cookies) : undefined
    if (caller !== undefined && !(caller instanceof Refusal)) return caller
    const identity = await this.#parts.authenticate?.(request)
    if (identity !== undefined && identity !== null) {
      if (!mayAs(identity, 'metrics')) throw new Refusal('ROLE_TOO_LOW')
      return { identity, via: 'host', untilMs: Infinity }
    }
    if (shown !== undefined) throw this.#wrong(address)
    throw caller ?? new Refusal('NOT_LOGGED_IN')
  }

  /** Turns a token into a session. */
  login(token: string, address: string | undefined): Caller & { readonly session: Session } {
    const known = this.#find(token, this.#parts.loginLink)
    if (known === undefined) throw this.#wrong(address)
    const session = this.#parts.sessions.start(known.fingerprint)
    return this.#callerBy(known, session)
  }

  /** What a page of this caller has to send along; undefined if it needs nothing. */
  csrfOf({ via, identity, session }: Caller): string | undefined {
    if (via === 'bearer') return undefined
    const { sessions } = this.#parts
    return sessions.csrfOf(
      session === undefined ? `host ${identity.name}` : `session ${session.id}`,
    )
  }

  /** @throws Refusal CSRF_TOKEN_WRONG */
  assertCsrf(caller: Caller, shown: string | null): void {
    const expected = this.csrfOf(caller)
    if (expected !== undefined && !sameSecret(shown ?? '', expected)) {
      throw new Refusal('CSRF_TOKEN_WRONG')
    }
  }

  /** Whether a stream that this caller opened may go on. */
  async stillValid({ session, untilMs }: Caller): Promise<boolean> {
    const { sessions, now } = this.#parts
    return untilMs > now() && (session === undefined || !(await sessions.isEnded(session)))
  }

  /**
   * A right token is let in whatever was tried before it: many people share an address, and one of them
   * must not be able to lock the others out. What keeps tokens from being guessed is their length.
   */
  #find(shown: string, link?: LoginLink): KnownToken | undefined {
    const known = findToken(this.#tokens, shown) ?? link?.use(shown)
    if (known === undefined || known.expiresMs > this.#parts.now()) return known
    throw this.#failed({ token: known.identity.name }, 'TOKEN_EXPIRED')
  }

  #wrong(address: string | undefined): Refusal {
    return this.#failed({ address }, 'TOKEN_WRONG')
  }

  /** Who fails too often is told nothing more than that, for a while. */
  #failed(from: AttemptSource, code: RefusalCode): Refusal {
    const { attempts } = this.#parts
    const waitMs = attempts.waitMs(from)
    if (waitMs > 0) {
      const headers = { 'retry-after': String(Math.ceil(waitMs / 1000)) }
      return new Refusal('TOO_MANY_ATTEMPTS', { headers })
    }
    attempts.add(from)
    return new Refusal(code)
  }

  async #bySession(cookies: readonly string[]): Promise<Caller | Refusal | undefined> {
    let refusal: Refusal | undefined
    for (const cookie of cookies) {
      try {
        const session = await this.#parts.sessions.read(cookie)
        const known = this.#tokens.find(({ fingerprint }) => fingerprint === session.fingerprint)
        if (known !== undefined && known.expiresMs > this.#parts.now()) {
          return this.#callerBy(known, session)
        }
        refusal = new Refusal(known === undefined ? 'SESSION_EXPIRED' : 'TOKEN_EXPIRED')
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        refusal = error
      }
    }
    return refusal
  }

  #callerBy(known: KnownToken, session: Session): Caller & { readonly session: Session } {
    const untilMs = Math.min(known.expiresMs, this.#parts.sessions.endsMs(session))
    return { identity: known.identity, via: 'session', session, untilMs }
  }
}
