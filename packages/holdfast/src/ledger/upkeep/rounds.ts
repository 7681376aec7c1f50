import type { Driver } from '../../core/driver.ts'
import { heard } from '../../tx/ask-each.ts'

/** Something that runs until it is stopped. */
export interface Rounds {
  /** Ends it; resolves when the round that is under way is over. */
  stop(): Promise<void>
}

/** How far a pause may be off, so that processes that started together drift apart. */
const jitter = 0.2

/** Runs a round every so often, which must not fail. Does not keep the process alive. */
function startRounds(everyMs: number, round: (isStopped: () => boolean) => Promise<void>): Rounds {
  let stopped = false
  let timer: NodeJS.Timeout | undefined
  let current: Promise<void> = Promise.resolve()
  const plan = (): void => {
    if (stopped) return
    const pauseMs = everyMs * (1 + jitter * (2 * Math.random() - 1))
    timer = setTimeout(
      () => {
        current = round(() => stopped).then(plan)
      },
      Math.min(pauseMs, 2 ** 31 - 1),
    )
    timer.unref()
  }
  plan()
  return {
    async stop() {
      stopped = true
      clearTimeout(timer)
      await current
    },
  }
}

/** Where rounds are made. */
export interface RoundsAt<Tx> {
  readonly primary: Driver<Tx>
  /** Its name if there are several. */
  readonly name: string | undefined
  /** What it answers; one of several that is silent is given up. */
  answered<T>(ask: () => Promise<T>): Promise<T>
}

/** Rounds on each primary, by themselves: none waits for those of another. */
export function startRoundsOnEach<Tx>(
  { driver }: { readonly driver: Driver<Tx> },
  everyMs: number,
  roundsAt: (at: RoundsAt<Tx>) => (isStopped: () => boolean) => Promise<void>,
): Rounds {
  const single: RoundsAt<Tx> = { primary: driver, name: undefined, answered: (ask) => ask() }
  const several = [...(driver.shards?.primaries ?? [])].map(
    ([name, primary]): RoundsAt<Tx> => ({
      primary,
      name,
      answered: (ask) => heard(primary.alone, primary.engine, ask),
    }),
  )
  const all = (driver.shards === undefined ? [single] : several).map((at) =>
    startRounds(everyMs, roundsAt(at)),
  )
  return {
    async stop() {
      await Promise.all(all.map((each) => each.stop()))
    },
  }
}
