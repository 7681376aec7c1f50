import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { FaultEvent, HistoryEvent } from '../core/model.ts'

/** A history that is being written. */
export interface HistoryFile extends Disposable {
  append(event: HistoryEvent | FaultEvent): void
}

/**
 * One file per writer, one line per event, handed to the operating system before `append` returns: who is
 * killed right after it has lost nothing that it was told.
 */
export function openHistory(folder: string, writer: string): HistoryFile {
  mkdirSync(folder, { recursive: true })
  const file = openSync(join(folder, `${writer}.jsonl`), 'a')
  return {
    append: (event) => void writeSync(file, `${JSON.stringify(event)}\n`),
    [Symbol.dispose]: () => closeSync(file),
  }
}

/** The machine's monotonic clock, alike in all processes. */
export function now(): string {
  return process.hrtime.bigint().toString()
}
