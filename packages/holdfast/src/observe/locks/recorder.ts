import type { Driver } from '../../core/driver.ts'
import { type Duration, durationMs } from '../../core/options/duration.ts'
import { holdfastError } from '../../core/errors.ts'
import { channels, publish } from '../../core/events.ts'
import type { LockListener } from '../../core/events/lock-listener.ts'
import { type LockMemory, lockMemoryOf, type NotedKey } from '../../core/locks/lock-memory.ts'
import { Recent } from '../../core/recent.ts'
import { within } from '../../core/within.ts'
import { noteLocks } from '../../engines/postgres/observe/notes.ts'
import { schemaMissing } from '../../engines/postgres/sql/call-function.ts'
import { assertNotNested } from '../../tx/run.ts'
import { LockCounts } from './lock-counts.ts'
import { noteEntry } from './lock-id.ts'
import { type KnownOptions, optionsGiven } from '../../core/options/known-options.ts'
import { assertDriver } from '../../core/client-kind.ts'

/** Settings of a recorder. */
export interface RecorderOptions {
  /** Pause between two writes, each time a little longer or shorter; from 100 ms. @defaultValue '3 s' */
  readonly every?: Duration
}

const recorderOptions: KnownOptions<RecorderOptions & { readonly schema?: string }> = {
  every: 'checked',
  schema: 'text',
}

/** A recorder that is running. It does not keep the process alive. */
export interface Recorder extends AsyncDisposable {
  /** Writes what is left, unless that takes seconds, and ends. Calling it again is harmless. */
  stop(): Promise<void>
}

type Locks = Parameters<LockListener['requested']>[0]

/** Names in one write. What is beyond follows with the next one. */
const namesPerWrite = 250
/** A name that was written is not written again for so long. */
const writtenForMs = 60_000
/** As many as are remembered to have been written. */
const mostWritten = 10_000
/** Who waits longer than this is part of an incident: its names are wanted now. */
const longWaitMs = 200
/** How often we look for those; also how exactly a pause is kept. */
const lookEveryMs = 100
const leastEveryMs = 100
const jitter = 0.2
const longestPauseMs = 60_000
/** Nobody who ends a process waits longer for what can be done without. */
const stopLimitMs = 2_000

/**
 * Writes down, behind the work, what the locks of this process are called and how they are used: one
 * statement every few seconds, on a connection of the pool, outside of everybody's transaction. An
 * acquisition that has waited for 200 ms gets its names written at once.
 *
 * @throws SCHEMA_MISSING, OBSERVE_RECORDING, OPTION_INVALID, TX_NESTED
 */
export async function startRecorder<Tx>(
  driver: Driver<Tx>,
  given: RecorderOptions & { readonly schema?: string } = {},
): Promise<Recorder> {
  assertDriver(driver, 'startRecorder')
  const { schema = 'holdfast', every = '3 s' } = optionsGiven(given, recorderOptions)
  const everyMs = durationMs(every, 'every')
  if (everyMs < leastEveryMs) {
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'every', subject: `every must be at least ${leastEveryMs} ms` },
    })
  }
  assertNotNested(driver)
  const memory = lockMemoryOf(driver)
  if (memory.listener !== undefined) throw holdfastError('OBSERVE_RECORDING')
  const recorder = new RunningRecorder(driver, memory, schema, everyMs)
  memory.listener = recorder
  try {
    await recorder.begin()
  } catch (error) {
    memory.listener = undefined
    throw schemaMissing(error) ?? error
  }
  // The rest of it is for the locks that it hears of.
  const running: Recorder = {
    stop: () => recorder.stop(),
    [Symbol.asyncDispose]: () => running.stop(),
  }
  return running
}

class RunningRecorder<Tx> implements LockListener {
  readonly #driver: Driver<Tx>
  readonly #memory: LockMemory
  readonly #schema: string
  readonly #everyMs: number
  readonly #counts = new LockCounts()
  /** Acquisitions under way and since when, the oldest first. */
  readonly #waiting = new Map<Locks, number>()
  /** When names were last written, by our own clock. */
  readonly #written = new Recent<string, number>(mostWritten)
  #lastTick = 0
  #nextAt = 0
  #troubles = 0
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined

  constructor(driver: Driver<Tx>, memory: LockMemory, schema: string, everyMs: number) {
    this.#driver = driver
    this.#memory = memory
    this.#schema = schema
    this.#everyMs = everyMs
  }

  /** Fails here if it can never succeed. */
  async begin(): Promise<void> {
    await this.#send([], '[]')
    this.#plan()
    // One timer that was set here: what is sent from it belongs to nobody's transaction or trace.
    this.#timer = setInterval(() => this.#look(), lookEveryMs)
    this.#timer.unref()
  }

  requested(locks: Locks, since: number): void {
    this.#waiting.set(locks, since)
  }

  acquired(locks: Locks, waitMs: number): void {
    this.#waiting.delete(locks)
    this.#counts.acquired(locks, waitMs)
  }

  refused(locks: Locks, why: 'timeout' | 'busy', waitMs: number): void {
    this.#waiting.delete(locks)
    this.#counts.refused(locks, why, waitMs)
  }

  failed(locks: Locks): void {
    this.#waiting.delete(locks)
  }

  released(locks: Locks, heldMs: number): void {
    this.#counts.released(locks, heldMs)
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    if (this.#memory.listener !== this) return
    this.#memory.listener = undefined
    if (this.#writing !== undefined) await within(this.#writing, stopLimitMs)
    await within(this.#write(true), stopLimitMs)
  }

  #plan(): void {
    const pauseMs = Math.min(longestPauseMs, this.#everyMs * 2 ** Math.min(this.#troubles, 10))
    this.#nextAt = performance.now() + pauseMs * (1 + jitter * (2 * Math.random() - 1))
  }

  #look(): void {
    if (this.#writing !== undefined) return
    const now = performance.now()
    // After trouble nothing is urgent enough to ask a server again that has just failed.
    const due = now >= this.#nextAt
    if (!due && (this.#troubles > 0 || !this.#waitsUnknown(now))) return
    this.#writing = this.#write(due).finally(() => {
      this.#writing = undefined
      if (due || this.#troubles > 0) this.#plan()
    })
  }

  /** Whether somebody has waited for long whose names nobody could find. */
  #waitsUnknown(now: number): boolean {
    for (const [locks, since] of this.#waiting) {
      // Insertion order is order in time.
      if (now - since < longWaitMs) return false
      if (locks.some(({ key }) => this.#isUnwritten(key, now))) return true
    }
    return false
  }

  /** Everything, or only the names of those who wait. Never rejects. */
  async #write(everything: boolean): Promise<void> {
    const now = performance.now()
    const lastTick = this.#lastTick
    const names = this.#unwritten(now, everything)
    const counts = everything ? this.#counts.take() : []
    if (names.length === 0 && counts.length === 0) return
    try {
      await this.#send(names, JSON.stringify(counts))
      this.#troubles = 0
      for (const { name } of names) this.#written.set(name, now)
      publish(channels.observeRecorded, {
        names: names.length,
        namespaces: counts.length,
        durationMs: performance.now() - now,
      })
    } catch (error) {
      this.#troubles += 1
      this.#lastTick = lastTick
      this.#counts.addAll(counts)
      publish(channels.observeTrouble, { during: 'record', error })
    }
  }

  async #send(names: readonly NotedKey[], minutesJson: string): Promise<void> {
    const namesJson = JSON.stringify(names.map(noteEntry))
    await this.#driver.alone.query(noteLocks(this.#schema, namesJson, minutesJson).plain)
  }

  /** Names of those who wait, then of what was used since the last write that took them all. */
  #unwritten(now: number, everything: boolean): NotedKey[] {
    const found = new Map<string, NotedKey>()
    const add = (key: NotedKey): boolean => {
      if (this.#isUnwritten(key, now)) found.set(key.name, key)
      return found.size < namesPerWrite
    }
    for (const locks of this.#waiting.keys()) {
      for (const { key } of locks) if (!add(key)) return [...found.values()]
    }
    if (!everything) return [...found.values()]
    for (const { key } of this.#memory.since(this.#lastTick)) {
      if (!add(key)) return [...found.values()]
    }
    this.#lastTick = this.#memory.tick()
    return [...found.values()]
  }

  #isUnwritten({ name }: NotedKey, now: number): boolean {
    const at = this.#written.get(name)
    return at === undefined || now - at >= writtenForMs
  }
}
