import { fullJitterMs, pause } from '../core/backoff.ts'
import type { SessionDriver } from '../core/driver.ts'

/** Between two tries to listen: a server that is away is not asked without a pause. */
const again = { baseMs: 1_000, capMs: 30_000 }

/** What is made of what is heard. */
export interface HearingTerms {
  readonly channel: string
  /** There may be something: a notification came, or some may have been missed. */
  wake(): void
  /** Nothing is heard for now; whoever polls goes on. */
  trouble(error: unknown): void
}

/**
 * Listens to a channel until it is ended, again on another connection if one is lost. Whatever was sent while nobody
 * listened is lost, so it says "look" each time it begins to.
 */
export class Hearing<Tx> {
  readonly #driver: Pick<SessionDriver<Tx>, 'listen'>
  readonly #terms: HearingTerms
  readonly #ending = new AbortController()
  readonly #over: Promise<void>

  constructor(driver: Pick<SessionDriver<Tx>, 'listen'>, terms: HearingTerms) {
    this.#driver = driver
    this.#terms = terms
    this.#over = this.#run()
  }

  async end(): Promise<void> {
    this.#ending.abort()
    await this.#over
  }

  async #run(): Promise<void> {
    const { signal } = this.#ending
    for (let losses = 0; !signal.aborted; ) {
      const began = performance.now()
      await this.#once().catch((error: unknown) => this.#terms.trouble(error))
      losses = performance.now() - began > again.capMs ? 1 : losses + 1
      if (signal.aborted) return
      await pause(fullJitterMs(losses, again.baseMs, again.capMs), signal).catch(() => undefined)
    }
  }

  /** Until its connection is lost or nobody wants it any more. */
  async #once(): Promise<void> {
    const { channel, wake, trouble } = this.#terms
    const listening = await this.#driver.listen(channel, wake)
    if (listening.failure !== undefined) trouble(listening.failure)
    wake()
    const over = AbortSignal.any([listening.lost, this.#ending.signal])
    if (!over.aborted) {
      await new Promise<void>((resolve) => {
        over.addEventListener('abort', () => resolve(), { once: true })
      })
    }
    await listening.end()
  }
}
