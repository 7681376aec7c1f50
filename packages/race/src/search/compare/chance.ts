/**
 * What is known about chance: which words were drawn, which times move, and which places cannot be foretold at all.
 * It is learnt from runs of one schedule, which should be alike. A word that comes again in another run was not drawn.
 */
import type { Entry, Leaf, Node, Prepared } from './prepared.ts'
import { isReadable, looksDrawn, type Part, type Time } from './text-parts.ts'
import { type Motion, motionOf, type Seen } from './times.ts'

interface TimesAt {
  /** Those that come again in every run of a schedule. */
  readonly still: Set<string>
  readonly moved: Set<string>
  motion: Motion
}

/** Texts that stand before or behind a drawn word: `order-` of `order-8f3k2j1h`, `INV-7-` of `INV-7-8f3k2j1h`. */
const before = /^(?:(?:[a-z]{2,}|\d{1,9})[-_])+/i
const behind = /(?:[-_](?:[a-z]{2,}|\d{1,9}))+$/i

export class Chance {
  readonly #met = new WeakSet<Prepared>()
  /** The run in which a word was; undefined if there are several. */
  readonly #words = new Map<string, Prepared | undefined>()
  /** Words that do not look like it, and did not come again. */
  readonly #drawn = new Set<string>()
  /** Places with drawn words. */
  readonly #drawnAt = new Set<string>()
  readonly #affixes = new Set<string>()
  readonly #times = new Map<string, TimesAt>()
  /** Places with long numbers that are no times: then those that could be are none either. */
  readonly #numbersAt = new Set<string>()
  /** Places where values differ that are neither drawn words nor moving times. */
  readonly #unclear = new Set<string>()

  /** Places whose values are drawn anew in every run. */
  get drawnAt(): readonly string[] {
    return [...this.#drawnAt]
  }

  get unclear(): readonly string[] {
    return [...this.#unclear]
  }

  isUnclear(path: string): boolean {
    return this.#unclear.has(path)
  }

  giveUp(path: string): void {
    this.#unclear.add(path)
  }

  /** Takes note of the words of a run. */
  meet(run: Prepared): void {
    if (this.#met.has(run)) return
    this.#met.add(run)
    for (const { path, parts } of leavesOf(run)) {
      for (const { kind, text } of parts) {
        if (kind === 'plain') continue
        if (kind === 'word' && wholeNumber.test(text)) this.#numbersAt.add(path)
        const other = this.#words.get(text)
        const again = this.#words.has(text) && other !== run
        this.#words.set(text, again ? undefined : run)
      }
    }
  }

  /** Learns words and times from two runs of one schedule. `motion` is learnt only if the runs should have ended alike. */
  learn(one: Prepared, other: Prepared, { motion }: { readonly motion: boolean }): void {
    this.meet(one)
    this.meet(other)
    this.#learnTimes(one, other, motion)
    this.#learnTimes(other, one, false)
    this.#learnWords([...leavesOf(one), ...leavesOf(other)])
    this.#learnAffixes(one, other)
  }

  /** Whether it was drawn: it was in one run only, and looks like it or is known to be. */
  isDrawn(word: string): boolean {
    return this.#isSingle(word) && (looksDrawn(word) || this.#drawn.has(word))
  }

  isDoubtful(run: Prepared): boolean {
    return [...leavesOf(run)].some(({ path, parts }) =>
      parts.some((part) => {
        const { kind, text } = this.asWord(path, part)
        return kind === 'word' && this.#isSingle(text) && !this.isDrawn(text)
      }),
    )
  }

  /** What stands before a drawn word, and behind it. */
  affixesOf(word: string, path: string): readonly [before: string, behind: string] {
    const known = affixesIn(word).filter((one) => this.#affixes.has(`${path} ${shapeOf(one)}`))
    // The longest of either side; they cannot meet, since something between them was drawn.
    const longest = (all: readonly string[]): string =>
      all.toSorted((one, other) => other.length - one.length)[0] ?? ''
    const first = longest(known.filter((one) => word.startsWith(one)))
    const last = longest(known.filter((one) => word.endsWith(one)))
    return first.length + last.length < word.length ? [first, last] : [first, '']
  }

  /** How the time moves; undefined if it does not, or if it is none after all. */
  motionAt(path: string, { text }: Time): Motion | undefined {
    const times = this.#times.get(path)
    if (times === undefined || times.moved.size === 0 || times.still.has(text)) return undefined
    return isTime(times.motion) && !this.#areNumbers(path, text) ? times.motion : undefined
  }

  /** As a word, if times of the place cannot be foretold and it may have been drawn as well. */
  asWord(path: string, part: Part): Part {
    if (part.kind !== 'time') return part
    if (this.#areNumbers(path, part.text)) return { kind: 'word', text: part.text }
    const times = this.#times.get(path)
    if (times === undefined || isTime(times.motion)) return part
    return { kind: wholeNumber.test(part.text) ? 'word' : 'plain', text: part.text }
  }

  #areNumbers(path: string, text: string): boolean {
    return wholeNumber.test(text) && this.#numbersAt.has(path)
  }

  #isSingle(word: string): boolean {
    return !this.#words.has(word) || this.#words.get(word) !== undefined
  }

  #learnTimes(one: Prepared, other: Prepared, withMotion: boolean): void {
    const [left, right] = [timesIn(one), timesIn(other)]
    for (const [path, times] of left) {
      const before = this.#times.get(path)
      const known = before ?? { still: new Set(), moved: new Set(), motion: everyMotion }
      this.#times.set(path, known)
      const there = right.get(path) ?? []
      const isIn = (all: readonly Time[], { text }: Time): boolean =>
        all.some((time) => time.text === text)
      for (const time of times) {
        if (!isIn(there, time)) {
          known.moved.add(time.text)
          known.still.delete(time.text)
        } else if (!known.moved.has(time.text)) known.still.add(time.text)
      }
      if (!withMotion) continue
      const seen = (run: Prepared, all: readonly Time[]): Seen[] =>
        all.filter(({ text }) => !known.still.has(text)).map((time) => ({ time, span: run.span }))
      const found = motionOf(seen(one, times), seen(other, there))
      known.motion = {
        withClock: known.motion.withClock && found.withClock,
        hardly: known.motion.hardly && found.hardly,
      }
    }
  }

  /** Of both runs at once: what a word in one of them shows about a place counts for the other as well. */
  #learnWords(leaves: readonly Leaf[]): void {
    const doubtful: (readonly [path: string, word: string])[] = []
    for (const { path, parts } of leaves) {
      for (const part of parts) {
        const { kind, text } = this.asWord(path, part)
        if (kind !== 'word' || !this.#isSingle(text)) continue
        if (looksDrawn(text)) this.#drawnAt.add(path)
        else doubtful.push([path, text])
      }
    }
    for (const [path, word] of doubtful) {
      if (isReadable(word) && !this.#drawnAt.has(path)) continue
      this.#drawn.add(word)
      this.#drawnAt.add(path)
    }
  }

  #learnAffixes(one: Prepared, other: Prepared): void {
    const foundIn = (run: Prepared): Set<string> =>
      new Set(
        [...leavesOf(run)].flatMap(({ path, parts }) =>
          parts.flatMap(({ kind, text }) =>
            kind === 'word' && this.isDrawn(text)
              ? affixesIn(text).map((found) => `${path} ${found}`)
              : [],
          ),
        ),
      )
    const right = foundIn(other)
    // In runs of another order the numbers may be others: that is what is to be seen.
    for (const found of foundIn(one)) if (right.has(found)) this.#affixes.add(shapeOf(found))
  }
}

/** All that may stand before what was drawn, and all that may stand behind it. */
function affixesIn(word: string): readonly string[] {
  const [first = '', last = ''] = [before.exec(word)?.[0], behind.exec(word)?.[0]]
  return [
    ...[...first.matchAll(/[-_]/g)].map(({ index }) => first.slice(0, index + 1)),
    ...[...last.matchAll(/[-_]/g)].map(({ index }) => last.slice(index)),
  ]
}

/** What is the same of it when its numbers are others. */
function shapeOf(found: string): string {
  return found.replace(/(?<=^|[-_ ])\d+(?=[-_]|$)/g, '#')
}

const wholeNumber = /^\d+$/
const everyMotion: Motion = { withClock: true, hardly: true }

function isTime({ withClock, hardly }: Motion): boolean {
  return withClock || hardly
}

function timesIn(run: Prepared): Map<string, Time[]> {
  const found = new Map<string, Time[]>()
  for (const { path, parts } of leavesOf(run)) {
    for (const part of parts) {
      if (part.kind !== 'time') continue
      const times = found.get(path) ?? []
      times.push(part)
      found.set(path, times)
    }
  }
  return found
}

function* leavesOf(run: Prepared): Generator<Leaf> {
  for (const { rows } of run.tables) {
    for (const { cells } of rows) for (const cell of cells) yield* leavesIn(cell)
  }
  for (const end of run.ends) yield* leavesIn(end)
}

export function* leavesIn(node: Node): Generator<Leaf> {
  if (node.kind === 'leaf') yield node
  else if (node.kind === 'list') for (const item of node.items) yield* leavesIn(item)
  else if (node.kind === 'joined') for (const part of node.parts) yield* leavesIn(part)
  else if (node.kind === 'object')
    for (const { name, value } of node.entries as readonly Entry[]) {
      yield name
      yield* leavesIn(value)
    }
}
