import { bucketOf, latencyBoundsMs } from '../../core/events.ts'

/** One line of what is measured: a value under labels, or a histogram. */
export interface Sample {
  /** In the order of the family's labels. */
  readonly labels: readonly string[]
  readonly value: number
  readonly histogram?: {
    /** How many were at most `bounds[n]`, each counted once; the last has the rest. */
    readonly buckets: readonly number[]
    readonly sum: number
    readonly count: number
  }
}

/** Everything that is measured under one name. */
export interface MetricFamily {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly labels: readonly string[]
  /** Upper bounds of a histogram's buckets, in the unit of the metric. */
  readonly bounds?: readonly number[]
  samples(): readonly Sample[]
}

/** A value that callers change directly: an event must not cost more than an addition. */
export interface Cell {
  value: number
}

/** A histogram under one set of labels. */
export class HistogramCell {
  /** Told of each value as well; not of those that were counted elsewhere. */
  readonly #mirror: ((ms: number) => void) | undefined
  readonly buckets: number[] = Array.from({ length: latencyBoundsMs.length + 1 }, () => 0)
  sumMs = 0
  count = 0

  constructor(mirror?: (ms: number) => void) {
    this.#mirror = mirror
  }

  observe(ms: number): void {
    this.#mirror?.(ms)
    const at = bucketOf(ms)
    this.buckets[at] = (this.buckets[at] as number) + 1
    this.sumMs += ms
    this.count += 1
  }

  /** Adds what was counted elsewhere by the same bounds. */
  add(buckets: readonly number[], sumMs: number, count: number): void {
    for (let at = 0; at < buckets.length; at += 1) {
      this.buckets[at] = (this.buckets[at] as number) + (buckets[at] as number)
    }
    this.sumMs += sumMs
    this.count += count
  }
}

/** What stands for all values of a label beyond those that are told apart. */
const rest = '(other)'

/**
 * Keeps a label from having as many values as there are users: the first so many are told apart, the others
 * are one.
 */
export class LabelValues {
  readonly #most: number
  readonly #known = new Set<string>()

  constructor(most: number) {
    this.#most = most
  }

  bounded(value: string): string {
    if (this.#known.has(value)) return value
    if (this.#known.size >= this.#most) return rest
    this.#known.add(value)
    return value
  }
}

/** Cells of one name by their labels; those of open labels are bounded by who calls. */
class CellFamily<C> {
  readonly name: string
  readonly help: string
  readonly labels: readonly string[]
  readonly #make: (labels: readonly string[]) => C
  readonly #cells = new Map<string, { readonly labels: readonly string[]; readonly cell: C }>()

  constructor(
    name: string,
    help: string,
    labels: readonly string[],
    make: (labels: readonly string[]) => C,
  ) {
    this.name = name
    this.help = help
    this.labels = labels
    this.#make = make
  }

  at(...labels: readonly string[]): C {
    // A character that is in no name we know of, and harmless where it is.
    const key = labels.length === 1 ? (labels[0] as string) : labels.join('\u0000')
    const known = this.#cells.get(key)
    if (known !== undefined) return known.cell
    const cell = this.#make(labels)
    this.#cells.set(key, { labels, cell })
    return cell
  }

  clear(): void {
    this.#cells.clear()
  }

  *entries(): Generator<{ readonly labels: readonly string[]; readonly cell: C }> {
    yield* this.#cells.values()
  }
}

export class CounterFamily extends CellFamily<Cell> implements MetricFamily {
  readonly type: 'counter' | 'gauge'

  constructor(
    name: string,
    help: string,
    labels: readonly string[] = [],
    type: 'counter' | 'gauge' = 'counter',
  ) {
    super(name, help, labels, () => ({ value: 0 }))
    this.type = type
  }

  samples(): Sample[] {
    return [...this.entries()].map(({ labels, cell }) => ({ labels, value: cell.value }))
  }
}

/** Lengths of time; measured in milliseconds and told in seconds. */
export class DurationFamily extends CellFamily<HistogramCell> implements MetricFamily {
  readonly type = 'histogram'
  readonly bounds: readonly number[] = latencyBoundsMs.map((ms) => ms / 1_000)
  /** Gives whoever is to be told of the values under these labels as well. */
  mirror: ((labels: readonly string[]) => (ms: number) => void) | undefined

  constructor(name: string, help: string, labels: readonly string[] = []) {
    super(name, help, labels, (values) => new HistogramCell(this.mirror?.(values)))
  }

  samples(): Sample[] {
    return [...this.entries()].map(({ labels, cell: { buckets, sumMs, count } }) => ({
      labels,
      value: count,
      histogram: { buckets: [...buckets], sum: sumMs / 1_000, count },
    }))
  }
}
