/**
 * A map that forgets. Two generations: when the young one is full, it becomes the old one, and what nobody
 * asked for in the meantime is forgotten. To look for the oldest of a Map that others were deleted from is
 * far slower.
 */
export class Recent<K, V> {
  readonly #generation: number
  #young = new Map<K, V>()
  #old = new Map<K, V>()

  /** Keeps at most `most`, and at least the half of it that was used last. */
  constructor(most: number) {
    this.#generation = Math.ceil(most / 2)
  }

  /** Whoever is asked for stays. */
  get(key: K): V | undefined {
    const known = this.#young.get(key)
    if (known !== undefined) return known
    const old = this.#old.get(key)
    if (old !== undefined) this.set(key, old)
    return old
  }

  set(key: K, value: V): void {
    if (this.#young.size >= this.#generation && !this.#young.has(key)) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(key, value)
  }

  /** All that is remembered; looking at it keeps nothing. */
  *values(): Generator<V> {
    yield* this.#young.values()
    for (const [key, value] of this.#old) if (!this.#young.has(key)) yield value
  }
}
