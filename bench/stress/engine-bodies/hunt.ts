import { watchCrashes, type Crashes } from '../bodies-crashes.ts'
import { generateBody } from './generate.ts'
import { judge, type Lie } from './judge.ts'
import type { Lane } from './lane.ts'
import { type Body, flat, type Vocabulary } from './model.ts'
import { runBody } from './play.ts'
import { tellingOf } from './record.ts'
import { printBody, shrink } from './shrink.ts'

/** Where the bodies of one product run. */
export interface Ground {
  readonly words: Vocabulary
  /** Client configurations; body number n belongs to lane n modulo the number of lanes. */
  readonly places: readonly string[]
  /** Lanes of each place: some bodies wait, for a connection to end or for a retry. */
  readonly lanesEach: number
  openLane(place: string, index: number): Promise<Lane>
}

export interface HuntOptions {
  readonly seed: number
  readonly count: number
  readonly seconds: number | undefined
  /** For controls: one lie of such a sort is enough, and need not be cut down; others do not count. */
  readonly stopAt?: readonly string[] | undefined
  readonly progress: (text: string) => void
}

type Counts = Record<string, number>

export interface Found {
  readonly bodies: number
  /** One text for every sort of lie on a client: what was told, what is so, the shortest body, the seed. */
  readonly findings: readonly string[]
  readonly notes: readonly string[]
  /** What was generated and what was told, so that nobody mistakes silence for a proof. */
  readonly coverage: Readonly<Record<string, Counts>>
}

const progressEveryMs = 5_000
/** Findings that are cut down; the others are only counted. */
const mostShrunk = 30

/** Generates bodies and runs them, on all places at once. */
export async function hunt(ground: Ground, options: HuntOptions): Promise<Found> {
  using crashes = watchCrashes()
  const running = new Hunt(ground, options, crashes)
  await running.all()
  return running.found()
}

class Hunt {
  readonly #ground: Ground
  readonly #options: HuntOptions
  readonly #crashes: Crashes
  readonly #findings = new Map<string, { text: string; times: number }>()
  readonly #coverage = { clients: {}, entries: {}, actions: {}, told: {} } satisfies Record<
    string,
    Counts
  >
  readonly #startedMs = performance.now()
  #slowest = { ms: 0, name: '' }
  #done = 0
  #lies = 0
  #runs = 0

  constructor(ground: Ground, options: HuntOptions, crashes: Crashes) {
    this.#ground = ground
    this.#options = options
    this.#crashes = crashes
  }

  get #lanes(): number {
    const { places, lanesEach } = this.#ground
    // A control has found its lie before a second lane of a client has opened.
    return this.#options.stopAt === undefined ? places.length * lanesEach : places.length
  }

  get #over(): boolean {
    const { stopAt, seconds = Infinity } = this.#options
    if (stopAt !== undefined && this.#lies > 0) return true
    return performance.now() - this.#startedMs > seconds * 1_000
  }

  async all(): Promise<void> {
    const telling = setInterval(() => this.#tell(), progressEveryMs)
    try {
      await Promise.all(Array.from({ length: this.#lanes }, (_, index) => this.#lane(index)))
    } finally {
      clearInterval(telling)
    }
  }

  found(): Found {
    const crashes = this.#crashes.notes()
    return {
      bodies: this.#done,
      findings: [
        ...[...this.#findings.values()].map(({ text, times }) => `${text}\n// seen: ${times}`),
        ...(this.#options.stopAt === undefined ? crashes : []),
      ],
      notes: [
        `${this.#done} bodies, ${this.#lies} lies of ${this.#findings.size} sorts`,
        `the slowest took ${(this.#slowest.ms / 1_000).toFixed(1)} s (${this.#slowest.name})`,
      ],
      coverage: this.#coverage,
    }
  }

  #tell(): void {
    const rate = this.#done / ((performance.now() - this.#startedMs) / 1_000)
    this.#options.progress(`${this.#done} bodies, ${this.#lies} lies, ${rate.toFixed(0)} a second`)
  }

  /** The bodies of one lane, by number: they are the same whatever the others do. */
  async #lane(index: number): Promise<void> {
    const { seed, count } = this.#options
    const { words, places } = this.#ground
    const place = places[index % places.length] as string
    await using lane = await this.#ground.openLane(place, index)
    for (let number = index; number < count && !this.#over; number += this.#lanes) {
      const body = generateBody(words, place, seed, number)
      this.#count(body)
      const lie = await this.#run(lane, body, number)
      this.#done += 1
      if (lie !== undefined) await this.#lied(lane, body, number, lie)
    }
  }

  async #run(lane: Lane, body: Body, number: number): Promise<Lie | undefined> {
    this.#runs += 1
    const began = performance.now()
    const record = await runBody(lane, body, `${process.pid}x${number}r${this.#runs}`)
    const tookMs = performance.now() - began
    if (tookMs > this.#slowest.ms)
      this.#slowest = { ms: tookMs, name: `${body.place}, body ${number}` }
    add(this.#coverage.told, tellingOf(record.told))
    return judge(record)
  }

  async #lied(lane: Lane, body: Body, number: number, lie: Lie): Promise<void> {
    const { seed, stopAt, progress } = this.#options
    if (stopAt?.includes(lie.sort) === false) return
    this.#lies += 1
    const sort = `${lie.sort} | ${body.place}`
    const known = this.#findings.get(sort)
    if (known !== undefined) {
      known.times += 1
      return
    }
    const finding = { text: textOf(body, lie, seed, number), times: 1 }
    this.#findings.set(sort, finding)
    if (stopAt !== undefined || this.#findings.size > mostShrunk) return
    const small = await shrink(body, lie, (candidate) => this.#run(lane, candidate, number))
    finding.text = textOf(small.body, small.lie, seed, number)
    progress(`lie: ${finding.text}`)
  }

  #count(body: Body): void {
    add(this.#coverage.clients, body.place)
    add(this.#coverage.entries, body.entry)
    for (const action of flat(body.actions)) {
      const { what } = action as { readonly what?: string }
      add(this.#coverage.actions, what === undefined ? action.do : `${action.do}: ${what}`)
    }
    for (const { what } of body.late) add(this.#coverage.actions, `late: ${what}`)
  }
}

function add(counts: Counts, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1
}

function textOf(body: Body, lie: Lie, seed: number, number: number): string {
  const where = `${body.place}, ${body.entry}`
  return `${lie.sort} (${where}): told ${lie.told}; ${lie.so}. Seed ${seed}, body ${number}:\n${printBody(body)}`
}
