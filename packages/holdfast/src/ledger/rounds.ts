/** Something that runs until it is stopped. */
export interface Rounds {
  /** Ends it; resolves when the round that is under way is over. */
  stop(): Promise<void>
}

/** How far a pause may be off, so that processes that started together drift apart. */
const jitter = 0.2

/** Runs a round every so often, which must not fail. Does not keep the process alive. */
export function startRounds(
  everyMs: number,
  round: (isStopped: () => boolean) => Promise<void>,
): Rounds {
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
