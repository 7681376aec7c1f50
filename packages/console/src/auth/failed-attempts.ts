/** How many wrong tokens are called wrong in a minute; all addresses that are not known share the last. */
const allowed = { perSource: 10, unknown: 60 }
const windowMs = 60_000
const mostAddresses = 2_000

/** A wrong token is known by its address only; one that has expired by its name, wherever it comes from. */
export type AttemptSource = { readonly address: string | undefined } | { readonly token: string }

/**
 * Counts wrong tokens by where they come from. Bounded: when it is full, whoever failed longest ago is
 * forgotten.
 */
export class FailedAttempts {
  readonly #now: () => number
  readonly #failures = new Map<string, { count: number; sinceMs: number }>()

  constructor(now: () => number) {
    this.#now = now
  }

  get size(): number {
    return this.#failures.size
  }

  /** How long a source has to wait; 0 if it may try. */
  waitMs(source: AttemptSource): number {
    const key = keyOf(source)
    const entry = this.#failures.get(key)
    if (entry === undefined) return 0
    const restMs = entry.sinceMs + windowMs - this.#now()
    if (restMs <= 0) {
      this.#failures.delete(key)
      return 0
    }
    return entry.count < (key === unknown ? allowed.unknown : allowed.perSource) ? 0 : restMs
  }

  add(source: AttemptSource): void {
    const key = keyOf(source)
    const entry = this.#failures.get(key) ?? { count: 0, sinceMs: this.#now() }
    entry.count += 1
    // Moves to the end: the first entry is the one that failed longest ago.
    this.#failures.delete(key)
    this.#failures.set(key, entry)
    if (this.#failures.size > mostAddresses) {
      for (const oldest of this.#failures.keys()) {
        this.#failures.delete(oldest)
        break
      }
    }
  }
}

const unknown = ''

/** No address starts like the name of a token does here. */
function keyOf(source: AttemptSource): string {
  return 'token' in source ? `token ${source.token}` : networkOf(source.address)
}

/** Of IPv6 the first half: whoever has one address has all that start so. */
function networkOf(address: string | undefined): string {
  if (address === undefined) return unknown
  if (!address.includes(':') || address.includes('.')) return address
  const [left = '', right] = (address.split('%')[0] ?? '').split('::')
  const [start, end] = [left, right ?? ''].map((part) =>
    part.split(':').filter((one) => one !== ''),
  )
  const missing = right === undefined ? 0 : 8 - (start?.length ?? 0) - (end?.length ?? 0)
  const groups = [
    ...(start ?? []),
    ...Array<string>(Math.max(0, missing)).fill('0'),
    ...(end ?? []),
  ]
  return `${groups.slice(0, 4).join(':').toLowerCase()}::`
}
