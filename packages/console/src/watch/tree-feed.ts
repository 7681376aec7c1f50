import type { LockTree, Observer } from 'holdfast/observe'
import type { ShownText } from '../core/shown-text.ts'
import type { TreeEvent } from '../core/wire.ts'
import type { History } from './history.ts'
import type { Redactor } from './redactor.ts'

/** A tree, ready to be sent. */
export class Frame {
  readonly id: string
  readonly json: ShownText
  readonly atMs: number = performance.now()
  #bytes: Uint8Array | undefined

  constructor(id: string, json: ShownText) {
    this.id = id
    this.json = json
  }

  /** As a server-sent event: made once, for all who listen. */
  get bytes(): Uint8Array {
    this.#bytes ??= Buffer.from(`id: ${this.id}\nevent: tree\ndata: ${this.json}\n\n`)
    return this.#bytes
  }
}

/** Hears of each tree, and of polls that failed. */
export interface TreeListener {
  tree(frame: Frame): void
  trouble(error: unknown): void
  /** There will be no more. */
  closing(): void
}

export interface TreeFeedOptions {
  readonly pollMs: number
  /** How often a tree is kept while nobody listens; undefined if it is not. */
  readonly backgroundMs: number | undefined
}

/** A server that takes long to tell is asked less often: of its time we use a fifth at most. */
const share = 4

/**
 * The lock tree of one database, each second while somebody listens: one poll for all of them. Without
 * listeners it rests, or looks now and then if a history is to be kept.
 */
export class TreeFeed {
  readonly #observer: Pick<Observer, 'locks'>
  readonly #redactor: Redactor
  readonly #history: History
  readonly #options: TreeFeedOptions
  readonly #listeners = new Set<TreeListener>()
  readonly #run = Date.now().toString(36)
  #count = 0
  #latest: Frame | undefined
  #polling: Promise<Frame> | undefined
  #tookMs = 0
  #timer: NodeJS.Timeout | undefined
  #closed = false

  constructor(
    observer: Pick<Observer, 'locks'>,
    redactor: Redactor,
    history: History,
    options: TreeFeedOptions,
  ) {
    this.#observer = observer
    this.#redactor = redactor
    this.#history = history
    this.#options = options
    this.#schedule(0)
  }

  get listeners(): number {
    return this.#listeners.size
  }

  /** The latest tree if it is fresh, else a new one. */
  async current(): Promise<Frame> {
    const latest = this.#latest
    const fresh = latest !== undefined && performance.now() - latest.atMs < this.#options.pollMs
    return fresh ? latest : await this.#poll()
  }

  /** What a listener that has just come may be shown at once. */
  fresh(): Frame | undefined {
    const latest = this.#latest
    const limitMs = 3 * this.#options.pollMs
    return latest !== undefined && performance.now() - latest.atMs < limitMs ? latest : undefined
  }

  /** Listens until the function that is returned is called. */
  listen(listener: TreeListener): () => void {
    this.#listeners.add(listener)
    if (this.#listeners.size === 1) this.#schedule(0)
    return () => {
      this.#listeners.delete(listener)
    }
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    for (const listener of this.#listeners) listener.closing()
  }

  #schedule(inMs: number): void {
    clearTimeout(this.#timer)
    if (this.#closed) return
    if (this.#listeners.size === 0 && this.#options.backgroundMs === undefined) return
    this.#timer = setTimeout(() => void this.#round(), inMs)
    // Who listens keeps the process alive; looking back does not.
    this.#timer.unref()
  }

  async #round(): Promise<void> {
    const before = this.#latest?.id
    try {
      const frame = await this.current()
      if (frame.id === before) for (const listener of this.#listeners) listener.tree(frame)
    } catch {
      // Listeners were told by the poll.
    }
    const { pollMs, backgroundMs = pollMs } = this.#options
    const wantedMs = this.#listeners.size > 0 ? pollMs : backgroundMs
    this.#schedule(Math.max(wantedMs - this.#tookMs, share * this.#tookMs))
  }

  /** One at a time; whoever comes meanwhile gets the same. */
  async #poll(): Promise<Frame> {
    this.#polling ??= this.#look().finally(() => {
      this.#polling = undefined
    })
    return await this.#polling
  }

  async #look(): Promise<Frame> {
    const startedMs = performance.now()
    try {
      const seen = await this.#observer.locks()
      const event: TreeEvent = { ...seen, hotKeys: hotKeysOf(seen) }
      const json = this.#redactor.json('tree', event)
      this.#count += 1
      const frame = new Frame(`${this.#run}-${this.#count}`, json)
      this.#latest = frame
      // By the names that are shown: whoever asks for one asks for what he saw.
      this.#history.add(json, this.#redactor.masked('tree', event))
      for (const listener of this.#listeners) listener.tree(frame)
      return frame
    } catch (error) {
      for (const listener of this.#listeners) listener.trouble(error)
      throw error
    } finally {
      this.#tookMs = performance.now() - startedMs
    }
  }
}

const mostHotKeys = 20

type HotKeys = TreeEvent['hotKeys']

function hotKeysOf({ sessions }: LockTree): HotKeys {
  const keys = new Map<string, HotKeys[number]>()
  for (const { waitsFor, waitingMs = 0 } of sessions) {
    if (waitsFor === undefined) continue
    const { kind, name, namespace } = waitsFor
    const { waiting = 0, longestWaitMs = 0 } = keys.get(name) ?? {}
    keys.set(name, {
      kind,
      name,
      ...(namespace === undefined ? {} : { namespace }),
      waiting: waiting + 1,
      longestWaitMs: Math.max(longestWaitMs, waitingMs),
    })
  }
  return [...keys.values()].toSorted((a, b) => b.waiting - a.waiting).slice(0, mostHotKeys)
}
