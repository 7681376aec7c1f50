import { randomBytes } from 'node:crypto'
import { Refusal } from '../core/refusals.ts'
import { OwnRevocations, type Revocations } from './revocations.ts'
import { sameSecret, signature } from './secret.ts'

/** What a session cookie says; it is signed, so the server keeps nothing but those that were ended. */
export interface Session {
  readonly id: string
  /** Of the token it was made with. */
  readonly fingerprint: string
  readonly startedMs: number
  readonly seenMs: number
}

export interface SessionLimits {
  /** Without a request for so long, it ends. */
  readonly idleMs: number
  /** So long after the login it ends, whatever happens. */
  readonly absoluteMs: number
}

/** A cookie is made anew when it has not been for so long. */
const refreshMs = 60_000

export class Sessions {
  readonly #key: Buffer
  readonly #limits: SessionLimits
  readonly #now: () => number
  readonly #revocations: Revocations
  /** Where only this process hears of who logs out. */
  readonly #own: OwnRevocations | undefined
  /** What a session is signed for: this process alone, unless all that know the key hear of who logs out. */
  #purpose: string

  constructor(
    key: Buffer,
    limits: SessionLimits,
    now: () => number,
    shared: Revocations | undefined,
  ) {
    this.#key = key
    this.#limits = limits
    this.#now = now
    this.#own = shared === undefined ? new OwnRevocations(now) : undefined
    this.#revocations = shared ?? (this.#own as OwnRevocations)
    this.#purpose = shared === undefined ? ownPurpose() : 'session'
  }

  start(fingerprint: string): Session {
    const nowMs = this.#now()
    const id = randomBytes(18).toString('base64url')
    return { id, fingerprint, startedMs: nowMs, seenMs: nowMs }
  }

  /** The value of the cookie. */
  write({ id, fingerprint, startedMs, seenMs }: Session): string {
    const text = `${id}.${fingerprint}.${startedMs.toString(36)}.${seenMs.toString(36)}`
    return `${text}.${signature(this.#key, this.#purpose, text)}`
  }

  /** @throws Refusal if it was not made here, or is over */
  async read(value: string): Promise<Session> {
    const parts = value.split('.')
    const [id = '', fingerprint = '', started = '', seen = '', signed = ''] = parts
    const text = parts.slice(0, 4).join('.')
    if (parts.length !== 5 || !sameSecret(signed, signature(this.#key, this.#purpose, text))) {
      throw new Refusal('SESSION_EXPIRED')
    }
    const session = {
      id,
      fingerprint,
      startedMs: Number.parseInt(started, 36),
      seenMs: Number.parseInt(seen, 36),
    }
    if (this.endsMs(session) <= this.#now() || (await this.isEnded(session))) {
      throw new Refusal('SESSION_EXPIRED')
    }
    return session
  }

  /** When it ends if nothing happens. */
  endsMs({ startedMs, seenMs }: Session): number {
    return Math.min(seenMs + this.#limits.idleMs, this.lastMs({ startedMs }))
  }

  /** When it ends at the latest. */
  lastMs({ startedMs }: Pick<Session, 'startedMs'>): number {
    return startedMs + this.#limits.absoluteMs
  }

  /** The same session, seen now; undefined if that is not worth a new cookie. */
  touch(session: Session): Session | undefined {
    const seenMs = this.#now()
    return seenMs - session.seenMs < Math.min(refreshMs, this.#limits.idleMs / 4)
      ? undefined
      : { ...session, seenMs }
  }

  async end(session: Session): Promise<void> {
    await this.#revocations.add(session.id, new Date(this.lastMs(session)))
    if (this.#own?.isFull !== true) return
    // From now on no session of before is good, and nothing has to be remembered of them.
    this.#purpose = ownPurpose()
    this.#own.clear()
  }

  async isEnded({ id }: Session): Promise<boolean> {
    return await this.#revocations.has(id)
  }

  /** What a page of this session has to send along with an action. */
  csrfOf(owner: string): string {
    return signature(this.#key, 'csrf', owner)
  }
}

function ownPurpose(): string {
  return `session ${randomBytes(18).toString('base64url')}`
}
