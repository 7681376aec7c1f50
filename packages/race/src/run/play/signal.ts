import { setImmediate } from 'node:timers/promises'

/** Wakes whoever waits for something to happen; a notice before the wait is not lost. */
export interface Signal {
  notify(): void
  /** True if something happened, false if the time ran out. */
  wait(milliseconds: number): Promise<boolean>
}

export function createSignal(): Signal {
  let noticed = false
  let wake: (() => void) | undefined

  return {
    notify() {
      noticed = true
      wake?.()
    },
    async wait(milliseconds) {
      if (!noticed) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, milliseconds)
          wake = () => {
            clearTimeout(timer)
            resolve()
          }
        })
        wake = undefined
      }
      const happened = noticed
      noticed = false
      return happened
    },
  }
}

/** Lets everything run that needs no outside help: microtasks, ticks, two turns of the loop. */
export async function drain(): Promise<void> {
  await setImmediate()
  await setImmediate()
}
