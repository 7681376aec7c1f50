import { setTimeout as pause } from 'node:timers/promises'

/** Does something again and again until it is told to stop, with a pause in between. */
export async function watching(
  everyMs: number,
  stop: AbortSignal,
  step: () => Promise<void>,
): Promise<void> {
  while (!stop.aborted) {
    await step()
    await pause(everyMs, undefined, { signal: stop }).catch(() => undefined)
  }
}
