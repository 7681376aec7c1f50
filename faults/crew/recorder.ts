import { setTimeout as pause } from 'node:timers/promises'
import type { Outcome } from '../core/model.ts'
import { type HistoryFile, now } from '../history/open-history.ts'
import { HoldfastError, UnknownOutcomeError } from '../../packages/holdfast/src/index.ts'

/** What is going to be done, as the history has it. */
export interface Asked {
  readonly operation: string
  readonly key: string
  readonly id?: string
  readonly value?: unknown
}

/** How it ended, if it was answered. */
export interface Answer {
  readonly outcome: 'ok' | 'refused'
  readonly value?: unknown
}

export interface Ended<A extends Answer> {
  readonly outcome: Outcome
  /** Only if it was answered. */
  readonly answer: A | undefined
}

/** Writes down what one workload of one process does. */
export interface Recorder {
  /**
   * Does it, between a line that says that it begins and one that says how it ended. Does not throw: what
   * was thrown is `unknown` if the library says so, and otherwise `failed`.
   */
  attempt<A extends Answer>(asked: Asked, body: () => Promise<A>): Promise<Ended<A>>
  /** The same again under the same id for as long as nobody knows how it ended. */
  persist<A extends Answer>(asked: Asked, body: () => Promise<A>): Promise<Ended<A>>
}

interface RecorderOptions {
  readonly workload: string
  readonly process: string
  readonly history: HistoryFile
  readonly stopping: AbortSignal
  readonly ended: (outcome: Outcome) => void
  /** A mistake of the harness, or of whoever uses the library so. */
  readonly trouble: (text: string) => void
}

let attempts = 0
const persistence = { tries: 20, pauseMs: 100 }

export function recorderOf(options: RecorderOptions): Recorder {
  const { workload, process, history, stopping, ended, trouble } = options
  const attempt: Recorder['attempt'] = async (asked, body) => {
    attempts += 1
    const { operation, key, id } = asked
    const line = {
      process,
      workload,
      operation,
      key,
      attempt: `${process}#${attempts}`,
      ...(id === undefined ? {} : { id }),
    }
    history.append({ ...line, at: now(), type: 'invoke', value: asked.value })
    try {
      const answer = await body()
      history.append({ ...line, at: now(), type: answer.outcome, value: answer.value })
      ended(answer.outcome)
      return { outcome: answer.outcome, answer }
    } catch (error) {
      const outcome = error instanceof UnknownOutcomeError ? 'unknown' : 'failed'
      history.append({ ...line, at: now(), type: outcome, code: codeOf(error) })
      if (isMistake(error)) trouble(`${workload} ${operation}: ${textOf(error)}`)
      ended(outcome)
      return { outcome, answer: undefined }
    }
  }
  return {
    attempt,
    async persist(asked, body) {
      for (let tried = 1; ; tried += 1) {
        const end = await attempt(asked, body)
        if (end.outcome !== 'unknown' || tried === persistence.tries || stopping.aborted) return end
        await pause(persistence.pauseMs)
      }
    },
  }
}

/** The library's code, with the SQLSTATE or the network's word behind it. */
function codeOf(error: unknown): string {
  const { code, name, cause } = error as {
    readonly code?: unknown
    readonly name?: string
    readonly cause?: { readonly code?: unknown }
  }
  const own = typeof code === 'string' ? code : (name ?? 'Error')
  return typeof cause?.code === 'string' && cause.code !== own ? `${own} ${cause.code}` : own
}

/** Faults make many errors, but none that says that the caller is wrong. */
function isMistake(error: unknown): boolean {
  if (error instanceof HoldfastError) {
    // At a failover a way may lead to a standby for a moment: one that is being promoted, or was the primary.
    if (error.code === 'LOCK_ON_STANDBY') return false
    return error.name === 'UsageError' || error.name === 'SchemaError'
  }
  return error instanceof TypeError || error instanceof ReferenceError
}

function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
