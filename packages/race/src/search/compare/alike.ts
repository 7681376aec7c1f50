/**
 * Whether two ends are the same but for values that are drawn anew in every run. Such a value is known by where it
 * stands: two ends are alike if the drawn values of one can be put in the place of those of the other.
 */

/** A row or an answer, in pieces: what is compared as it is, and drawn values. */
export type Item = readonly Piece[]
export type Piece = string | Drawn
export interface Drawn {
  readonly drawn: string
}

/** Undefined if that takes too long to find out. */
export function areAlike(one: readonly Item[], other: readonly Item[]): boolean | undefined {
  return new Match().alike(new End(one), new End(other), [])
}

/** Attempts to tell values apart that stand in the same places. */
const mostAttempts = 200

type Colours = ReadonlyMap<string, number>

class End {
  readonly items: readonly Item[]
  /** Where each drawn value stands. */
  readonly places = new Map<string, Set<number>>()

  constructor(items: readonly Item[]) {
    this.items = items
    items.forEach((item, place) => {
      for (const piece of item) {
        if (typeof piece === 'string') continue
        const places = this.places.get(piece.drawn) ?? new Set()
        this.places.set(piece.drawn, places.add(place))
      }
    })
  }

  /** Values that are connected with each other in more than one way. */
  get circular(): readonly string[] {
    const parents = new Map<string | number, string | number>()
    const root = (of: string | number): string | number => {
      let found = of
      for (let up = parents.get(found); up !== undefined; up = parents.get(found)) found = up
      return found
    }
    const closed = new Set<string | number>()
    for (const [name, places] of this.places) {
      for (const place of places) {
        const [left, right] = [root(name), root(place)]
        if (left === right) closed.add(left)
        else {
          parents.set(left, right)
          if (closed.has(left)) closed.add(right)
        }
      }
    }
    return [...this.places.keys()].filter((name) => closed.has(root(name)))
  }
}

class Match {
  readonly #numbers = new Map<string, number>()
  #attempts = 0

  /** `fixed`: values of one that stand for values of the other. */
  alike(one: End, other: End, fixed: readonly (readonly [string, string])[]): boolean | undefined {
    this.#attempts += 1
    if (this.#attempts > mostAttempts) return undefined
    const left = this.#colour(one, new Map(fixed.map(([name], place) => [name, -place - 1])))
    const right = this.#colour(other, new Map(fixed.map(([, name], place) => [name, -place - 1])))
    if (this.#text(one, left) !== this.#text(other, right)) return false
    const twin = this.#twins(one, left)
    if (twin === undefined) return true
    let unknown = false
    for (const [name, colour] of right) {
      if (colour !== left.get(twin)) continue
      const alike = this.alike(one, other, [...fixed, [twin, name]])
      if (alike) return true
      unknown ||= alike === undefined
    }
    return unknown ? undefined : false
  }

  /** Numbers the drawn values, so that those with different numbers cannot stand for each other. */
  #colour(end: End, fixed: Colours): Map<string, number> {
    let colours = new Map([...end.places.keys()].map((name) => [name, fixed.get(name) ?? 0]))
    for (let known = 0; ; ) {
      const texts = end.items.map((item) => itemText(item, colours))
      const next = new Map(
        [...end.places].map(([name, places]) => {
          const around = [...places].map((place) => {
            const at = (end.items[place] as Item).flatMap((piece, index) =>
              typeof piece !== 'string' && piece.drawn === name ? [index] : [],
            )
            return `${texts[place]} ${at.join()}`
          })
          return [name, this.#number(`${colours.get(name)} ${around.sort().join('\n')}`)]
        }),
      )
      const found = new Set(next.values()).size
      colours = next
      if (found === known) return colours
      known = found
    }
  }

  /** The same number for the same text, in both ends. */
  #number(text: string): number {
    const number = this.#numbers.get(text) ?? this.#numbers.size + 1
    this.#numbers.set(text, number)
    return number
  }

  #text({ items }: End, colours: Colours): string {
    return items
      .map((item) => itemText(item, colours))
      .sort()
      .join('\n')
  }

  /** A value in a circle of items that is not told apart from another one. Without circles colours tell everything. */
  #twins(end: End, colours: Colours): string | undefined {
    const counts = new Map<number, number>()
    for (const colour of colours.values()) counts.set(colour, (counts.get(colour) ?? 0) + 1)
    for (const name of end.circular) {
      if ((counts.get(colours.get(name) ?? 0) ?? 0) > 1) return name
    }
    return undefined
  }
}

/** With the number of each drawn value, and which of them are the same within the item. */
function itemText(item: Item, colours: Colours): string {
  const own = new Map<string, number>()
  return item
    .map((piece) => {
      if (typeof piece === 'string') return piece
      const place = own.get(piece.drawn) ?? own.size
      own.set(piece.drawn, place)
      return `\uE000${colours.get(piece.drawn)}.${place}\uE001`
    })
    .join('')
}
