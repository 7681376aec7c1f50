/** Something that happened at one moment between `began` and `ended`. */
export interface Event<Step> {
  readonly began: number
  /** `Infinity`: nobody knows when, or whether. */
  readonly ended: number
  readonly step: Step
  /** It may also not have happened at all. */
  readonly optional?: boolean
  /** For people. */
  readonly name: string
}

/** What one key is supposed to do when one thing happens after the other. */
export interface Sequential<State, Step> {
  readonly initial: State
  /** The state after it, or nothing if it cannot have been answered so in this state. */
  next(state: State, step: Step): State | undefined
  /** The same text for the same state. */
  nameOf(state: State): string
}

export type LinearizableAnswer =
  | { readonly kind: 'linearizable' }
  /** No order explains the answers; `stuck` could not be placed after the longest one that was found. */
  | { readonly kind: 'impossible'; readonly placed: number; readonly stuck: readonly string[] }
  /** Given up after so many steps: no proof of anything. */
  | { readonly kind: 'undecided'; readonly steps: number }

const mostSteps = 2_000_000

/**
 * Looks for an order of events that respects time (who ended before another began comes first) and that
 * the sequential object allows: the search of Wing and Gong with Lowe's memory of what was tried. A set of
 * placed events and a state are tried once.
 */
export function checkLinearizable<State, Step>(
  events: readonly Event<Step>[],
  object: Sequential<State, Step>,
  limit: number = mostSteps,
): LinearizableAnswer {
  const sorted = events.toSorted((a, b) => a.began - b.began)
  const needed = sorted.filter(({ optional }) => optional !== true).length
  const placed = new Uint8Array(sorted.length)
  const tried = new Set<string>()
  let steps = 0
  let best: { placed: number; stuck: readonly string[] } = { placed: -1, stuck: [] }

  /** Those that may come next: they began before the first end among what is not placed yet. */
  const candidates = (): number[] => {
    let end = Number.POSITIVE_INFINITY
    for (const [at, event] of sorted.entries()) {
      if (placed[at] === 0 && event.optional !== true) end = Math.min(end, event.ended)
      if (event.began > end) break
    }
    const found: number[] = []
    for (const [at, event] of sorted.entries()) {
      if (event.began > end) break
      if (placed[at] === 0) found.push(at)
    }
    // What had to end first is likely to have come first.
    return found.toSorted((a, b) => (sorted[a]?.ended ?? 0) - (sorted[b]?.ended ?? 0))
  }

  interface Frame {
    readonly state: State
    readonly options: readonly number[]
    tried: number
    /** What was placed to come here. */
    readonly by: number
  }
  const frames: Frame[] = [{ state: object.initial, options: candidates(), tried: 0, by: -1 }]
  let done = 0
  for (;;) {
    if (done === needed) return { kind: 'linearizable' }
    const frame = frames.at(-1)
    if (frame === undefined) return { kind: 'impossible', ...best }
    const at = frame.options[frame.tried]
    if (at === undefined) {
      frames.pop()
      if (frame.by >= 0) {
        placed[frame.by] = 0
        if (sorted[frame.by]?.optional !== true) done -= 1
      }
      continue
    }
    frame.tried += 1
    steps += 1
    if (steps > limit) return { kind: 'undecided', steps }
    const event = sorted[at] as Event<Step>
    const state = object.next(frame.state, event.step)
    if (state === undefined) {
      if (done > best.placed) {
        best = { placed: done, stuck: frame.options.map((each) => sorted[each]?.name ?? '') }
      }
      continue
    }
    placed[at] = 1
    const name = `${object.nameOf(state)}|${packed(placed)}`
    if (tried.has(name)) {
      placed[at] = 0
      continue
    }
    tried.add(name)
    if (event.optional !== true) done += 1
    frames.push({ state, options: candidates(), tried: 0, by: at })
  }
}

/** Eight to a character. */
function packed(placed: Uint8Array): string {
  let text = ''
  for (let from = 0; from < placed.length; from += 8) {
    let bits = 0
    for (let bit = 0; bit < 8; bit += 1) bits |= (placed[from + bit] ?? 0) << bit
    text += String.fromCharCode(bits)
  }
  return text
}
