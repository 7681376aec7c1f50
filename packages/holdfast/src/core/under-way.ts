/** Counts what is under way, for things of which there are too many to know each of them. */
export class UnderWay {
  #count = 0
  #ended: PromiseWithResolvers<void> | undefined

  /** Counts it until it has ended. */
  async during<T>(run: () => Promise<T>): Promise<T> {
    this.#count += 1
    try {
      return await run()
    } finally {
      this.#count -= 1
      if (this.#count === 0) {
        this.#ended?.resolve()
        this.#ended = undefined
      }
    }
  }

  /** Resolves as soon as nothing is. */
  async ended(): Promise<void> {
    if (this.#count === 0) return
    this.#ended ??= Promise.withResolvers()
    await this.#ended.promise
  }
}
