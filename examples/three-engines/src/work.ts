import { setTimeout as pause } from 'node:timers/promises'
import { slowMs } from './settings.ts'

/** What a process does, for one engine and in one way. */
export interface Work {
  /** Makes what Holdfast needs in the database. */
  install?(): Promise<void>
  /** Sells one lamp; false if there is none. */
  sell(): Promise<boolean>
  /** Keeps one more picture of a user who may have five; false if there are five. */
  upload(): Promise<boolean>
  /** Takes an order; the warehouse is to be told of it. */
  order(): Promise<void>
  /** Does jobs until it is told to stop. */
  jobs(stopped: AbortSignal): Promise<void>
  /** Writes a report every second until it is told to stop. Every process is asked to. */
  report(stopped: AbortSignal): Promise<void>
  close(): Promise<void>
}

/** The slow part: a price that somebody else knows, a call, a picture that is made smaller. */
export async function slow(): Promise<void> {
  process.send?.('working')
  await pause(slowMs)
}

/** Resolves with the number of the next second, shortly after it has begun. No two timers are equally late. */
export async function nextSecond(stopped: AbortSignal): Promise<number> {
  const second = Math.floor(Date.now() / 1000) + 1
  const late = Number(process.env['LATE_MS'] ?? 0)
  await pause(second * 1000 - Date.now() + late, undefined, { signal: stopped }).catch(
    () => undefined,
  )
  return second
}

export function untilStopped(stopped: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (stopped.aborted) resolve()
    else stopped.addEventListener('abort', () => resolve(), { once: true })
  })
}
