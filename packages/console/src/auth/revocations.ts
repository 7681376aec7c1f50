/**
 * Remembers sessions that somebody has logged out of before their time. What several processes share, such as a table
 * or Redis, lets each of them take the sessions of all.
 */
export interface Revocations {
  /** Remembers it until then; afterwards the session is over anyway. */
  add(session: string, until: Date): void | Promise<void>
  has(session: string): boolean | Promise<boolean>
}

/** More than anybody logs out of in a day; a few megabytes. */
const most = 100_000

/** Those of one process. */
export class OwnRevocations implements Revocations {
  readonly #now: () => number
  readonly #until = new Map<string, number>()

  constructor(now: () => number) {
    this.#now = now
  }

  add(session: string, until: Date): void {
    this.#until.set(session, until.getTime())
    if (!this.isFull) return
    const nowMs = this.#now()
    for (const [id, untilMs] of this.#until) if (untilMs <= nowMs) this.#until.delete(id)
  }

  /** There are too many to remember. None may be forgotten, so that all sessions have to end. */
  get isFull(): boolean {
    return this.#until.size > most
  }

  clear(): void {
    this.#until.clear()
  }

  has(session: string): boolean {
    return this.#until.has(session)
  }
}
