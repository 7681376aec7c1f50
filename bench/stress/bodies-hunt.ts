import { type Crashes, watchCrashes } from './bodies-crashes.ts'
import { generateBody, places } from './bodies-generate.ts'
import { type Lie, judge } from './bodies-judge.ts'
import { type Lane, openLane, type Servers } from './bodies-lane.ts'
import type { Body, Place } from './bodies-model.ts'
import { partsOf, printBody } from './bodies-print.ts'
import { tellingOf } from './bodies-record.ts'
import { runBody } from './bodies-run.ts'
import { shrink } from './bodies-shrink.ts'

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

/** Of every place more than one: some bodies wait, for a backend to end or for a retry. */
export const allLanes = places.length * 2
const progressEveryMs = 5_000
/** Findings that are cut down; the others are only counted. */
const mostShrunk = 40

/** Generates bodies and runs them, on all places at once. */
export async function hunt(servers: Servers, options: HuntOptions): Promise<Found> {
  using crashes = watchCrashes()
  const running = new Hunt(servers, options, crashes)
  await running.all()
  return running.found()
}

class Hunt {
  readonly #servers: Servers
  readonly #options: HuntOptions
  readonly #crashes: Crashes
  readonly #findings = new Map<string, { text: string; times: number }>()
  readonly #coverage = { clients: {}, entries: {}, actions: {}, told: {} } satisfies Record<
    string,
    Counts
  >
  readonly #untilMs: number
  readonly #startedMs = performance.now()
  #slowest = { ms: 0, name: '' }
  #done = 0
  #lies = 0
  #runs = 0

  constructor(servers: Servers, options: HuntOptions, crashes: Crashes) {
    this.#servers = servers
    this.#options = options
    this.#crashes = crashes
    this.#untilMs = this.#startedMs + (options.seconds ?? Infinity) * 1_000
  }

  async all(): Promise<void> {
    const telling = setInterval(() => this.#tell(), progressEveryMs)
    try {
      await Promise.all(
        Array.from({ length: this.#lanes }, async (_, index) => {
          const place = places[index % places.length] as Place
          await using lane = await openLane(place, this.#servers, index)
          await this.#work(lane, index)
        }),
      )
      await this.#suspects()
    } finally {
      clearInterval(telling)
    }
  }

  found(): Found {
    return {
      bodies: this.#done,
      findings: [...this.#findings.values()].map(({ text, times }) => `${text}\n// seen: ${times}`),
      notes: [
        `${this.#done} bodies, ${this.#lies} lies of ${this.#findings.size} sorts`,
        `the slowest took ${(this.#slowest.ms / 1_000).toFixed(1)} s (${this.#slowest.name})`,
        ...this.#crashes.notes(),
      ],
      coverage: this.#coverage,
    }
  }

  #tell(): void {
    const rate = this.#done / ((performance.now() - this.#startedMs) / 1_000)
    this.#options.progress(`${this.#done} bodies, ${this.#lies} lies, ${rate.toFixed(0)} a second`)
  }

  /** A control has found its lie before a second lane of a client has opened. */
  get #lanes(): number {
    return this.#options.stopAt === undefined ? allLanes : places.length
  }

  get #over(): boolean {
    const enough = this.#options.stopAt !== undefined && this.#lies > 0
    return enough || performance.now() > this.#untilMs
  }

  /** The bodies of one lane, by number: they are the same whatever the others do. */
  async #work(lane: Lane, first: number): Promise<void> {
    const { seed, count } = this.#options
    for (let number = first; number < count && !this.#over; number += this.#lanes) {
      const body = generateBody(seed, number)
      this.#count(body)
      const lie = await this.#crashes.during({ body, number }, () => this.#run(lane, body, number))
      this.#done += 1
      if (lie !== undefined) await this.#lied(lane, body, number, lie)
    }
  }

  async #run(lane: Lane, body: Body, number: number): Promise<Lie | undefined> {
    this.#runs += 1
    const began = performance.now()
    const record = await runBody(lane, body, `${process.pid}x${number}r${this.#runs}`)
    const tookMs = performance.now() - began
    if (tookMs > this.#slowest.ms) {
      this.#slowest = { ms: tookMs, name: `${nameOf(body)}, body ${number}` }
    }
    for (const { told } of record.callers) add(this.#coverage.told, tellingOf(told))
    return judge(record)
  }

  async #lied(lane: Lane, body: Body, number: number, lie: Lie): Promise<void> {
    const { seed, stopAt, progress } = this.#options
    if (stopAt?.includes(lie.sort) === false) return
    this.#lies += 1
    const sort = `${lie.sort} | ${nameOf(body)}`
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

  /** One of those that were running when the process would have ended; alone it shows which. */
  async #suspects(): Promise<void> {
    if (this.#options.stopAt !== undefined) return
    const seen = new Set<string>()
    for (const { body, number, why } of this.#crashes.suspects()) {
      const sort = `${why} | ${nameOf(body)}`
      if (seen.has(sort)) continue
      await using lane = await openLane(body, this.#servers, 0)
      const alone = async (candidate: Body): Promise<Lie | undefined> => {
        await this.#crashes.sinceLastLook()
        const lie = await this.#run(lane, candidate, number)
        const crash = await this.#crashes.sinceLastLook()
        const told = 'nothing: the process would have ended'
        return crash === undefined ? lie : { sort: `crash: ${crash}`, told, so: crash }
      }
      const lie = await alone(body)
      if (lie?.sort.startsWith('crash') !== true) continue
      seen.add(sort)
      this.#lies += 1
      const small = await shrink(body, lie, alone)
      const text = textOf(small.body, small.lie, this.#options.seed, number)
      this.#findings.set(`${lie.sort} | ${nameOf(body)}`, { text, times: 1 })
      this.#options.progress(`lie: ${text}`)
    }
  }

  #count(body: Body): void {
    add(this.#coverage.clients, nameOf(body))
    add(this.#coverage.entries, body.entry)
    for (const part of partsOf(body)) add(this.#coverage.actions, part)
  }
}

function add(counts: Counts, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1
}

function nameOf({ client, pooled }: Place): string {
  return pooled ? `${client}, pooled` : client
}

function textOf(body: Body, lie: Lie, seed: number, number: number): string {
  const where = `${nameOf(body)}, ${body.entry}`
  return `${lie.sort} (${where}): told ${lie.told}; ${lie.so}. Seed ${seed}, body ${number}:\n${printBody(body)}`
}
