/** Something to wait for: a time, or that somebody says it is worth looking again. */
export class Wakeable {
  #wake: (() => void) | undefined
  /** Somebody called while nobody waited: the next one does not wait either. */
  #called = false

  async wait(ms: number | undefined): Promise<void> {
    if (this.#called) {
      this.#called = false
      return
    }
    await new Promise<void>((resolve) => {
      const timer = ms === undefined ? undefined : setTimeout(() => this.wake(), ms)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  wake(): void {
    const wake = this.#wake
    this.#wake = undefined
    if (wake === undefined) this.#called = true
    else wake()
  }
}
