/** Which values are of chance: by the places in which they stand, and by what was seen there. */

/** Values by path, each as often as it is there. */
export type Leaves = readonly (readonly [path: string, value: unknown])[]

const word = '‹chance›'

export class Chance {
  /** Places whose values differed between two runs that should have been alike. */
  readonly #paths = new Set<string>()
  readonly #known = new Set<string>()
  readonly #differed = new Set<string>()

  get paths(): readonly string[] {
    return [...this.#paths]
  }

  know(leaves: Leaves): void {
    for (const leaf of leaves) this.#known.add(keyOf(leaf))
  }

  /** Takes what is in one and not in the other, place by place, for chance; the places where that is hard to believe. */
  differ(one: Leaves, other: Leaves): readonly string[] {
    const odd = new Set<string>()
    const left = counted(one)
    const right = counted(other)
    for (const [key, [leaf, count]] of [...left, ...right]) {
      if (count === (left.get(key)?.[1] ?? 0) && count === (right.get(key)?.[1] ?? 0)) continue
      if (leaf[1] === null || isSaid(leaf)) continue
      this.#differed.add(key)
      if (!this.#paths.has(leaf[0]) && !looksRandom(leaf[1])) odd.add(leaf[0])
      this.#paths.add(leaf[0])
    }
    return [...odd]
  }

  /** The value, or a word for it if it is of chance. What is nothing stays nothing. */
  masked(path: string, value: unknown): unknown {
    if (value === null || !this.#paths.has(path)) return value
    const key = keyOf([path, value])
    return this.#known.has(key) && !this.#differed.has(key) ? value : word
  }
}

/** Long enough to have been drawn, or a time: a small number is a count or a state. */
function looksRandom(value: unknown): boolean {
  return String(value).length >= 8
}

/** A yes or no, or a status: whatever it depends on, it is not drawn. */
function isSaid([path, value]: Leaves[number]): boolean {
  return typeof value === 'boolean' || /(?:^|[ .])(?:status|statusCode|ok|allowed)$/.test(path)
}

function keyOf([path, value]: Leaves[number]): string {
  return `${path} ${JSON.stringify(value)}`
}

function counted(leaves: Leaves): Map<string, readonly [Leaves[number], number]> {
  const counts = new Map<string, readonly [Leaves[number], number]>()
  for (const leaf of leaves) {
    const key = keyOf(leaf)
    counts.set(key, [leaf, (counts.get(key)?.[1] ?? 0) + 1])
  }
  return counts
}
