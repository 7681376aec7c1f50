/** Random numbers from a seed, so that a search can be made again. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** A whole number from 0 to `limit` - 1. */
  below(limit: number): number {
    return Math.floor(this.#unit() * limit)
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)] as Item
  }

  shuffle<Item>(items: readonly Item[]): Item[] {
    const shuffled = [...items]
    for (let last = shuffled.length - 1; last > 0; last--) {
      const place = this.below(last + 1)
      const item = shuffled[last] as Item
      shuffled[last] = shuffled[place] as Item
      shuffled[place] = item
    }
    return shuffled
  }

  /** From 0 to 1: one multiplication per bit mixed, enough for schedules, not for secrets. */
  #unit(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 0x100000000
  }
}
