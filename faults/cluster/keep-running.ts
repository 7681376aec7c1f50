import { setTimeout as pause } from 'node:timers/promises'
import { rowsOf } from './ask.ts'

interface Server {
  readonly running: boolean
  startAgain(): Promise<void>
}

const limitMs = 60_000

/** Starts a server that has ended, as often as something ends it meanwhile, until it answers. */
export async function keepRunning(
  name: string,
  server: Server,
  url: string,
  question: string,
): Promise<void> {
  const deadline = performance.now() + limitMs
  for (;;) {
    try {
      if (!server.running) await server.startAgain()
      await rowsOf(url, question)
      return
    } catch (error) {
      if (performance.now() > deadline) {
        throw new Error(`${name} did not answer within ${limitMs} ms`, { cause: error })
      }
      await pause(20)
    }
  }
}

/** Lets callers in one after the other. */
export function oneAtATime(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return async (work) => {
    const mine = last.then(work, work)
    last = mine.catch(() => undefined)
    return await mine
  }
}
