import { setTimeout as pause } from 'node:timers/promises'

export interface WaitUntilOptions {
  /** Give up after this long. @defaultValue 15 000 */
  readonly limitMs?: number
  /** Pause between two looks. @defaultValue 5 */
  readonly everyMs?: number
}

/**
 * Looks again and again until `look` returns something other than `undefined`.
 * The pause only bounds how often we look; no test may depend on its length.
 */
export async function waitUntil<T>(
  what: string,
  look: () => Promise<T | undefined> | T | undefined,
  { limitMs = 15_000, everyMs = 5 }: WaitUntilOptions = {},
): Promise<T> {
  const deadline = performance.now() + limitMs
  for (;;) {
    const seen = await look()
    if (seen !== undefined) return seen
    if (performance.now() > deadline) throw new Error(`waited ${limitMs} ms in vain until ${what}`)
    await pause(everyMs)
  }
}
