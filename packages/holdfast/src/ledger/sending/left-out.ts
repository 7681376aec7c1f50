/** How long an account that was left out is not tried as a plain one again. */
const forMs = 1_000

/** Accounts that `apply_plain` has left out: their operations go the whole way for a while. */
export class LeftOut {
  readonly #bases = new Set<string>()
  #since = 0

  has(base: string): boolean {
    if (this.#bases.size === 0) return false
    this.#forget()
    return this.#bases.has(base)
  }

  add(base: string): void {
    this.#forget()
    this.#bases.add(base)
  }

  /** After a while, also if nothing is left out any more. */
  #forget(): void {
    const now = performance.now()
    if (now <= this.#since + forMs) return
    this.#bases.clear()
    this.#since = now
  }
}
