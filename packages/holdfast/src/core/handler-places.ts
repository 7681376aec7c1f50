import type { Driver } from './driver.ts'
import { processWide } from './process-wide.ts'

/**
 * Handlers of ours that work in a transaction keep a connection for as long as they run. If they had all of a
 * pool, no heartbeat and no renewal would get through, and everything they hold would be lost. So the last
 * connection of a pool is never a handler's: whoever opens such a transaction takes a place first.
 */
export interface HandlerPlaces {
  /** How many there are; `undefined` if the size of the pool is not known, and then nobody waits. */
  readonly most: number | undefined
  /**
   * Waits for a place, first come first served, and gives what frees it. Rejects with the signal's reason.
   * After `forMs` it goes on without a place: then it is up to the pool. With a pool of one connection nobody
   * waits, because none could be left.
   */
  take(signal?: AbortSignal, forMs?: number): Promise<() => void>
}

const known = /* @__PURE__ */ processWide('handler-places/1', () => new WeakMap<object, Places>())

/** The places of a driver's pool: one and the same for all drivers over it. */
export function handlerPlacesOf<Tx>(driver: Driver<Tx>): HandlerPlaces {
  const { pool } = driver.capabilities
  if (pool === undefined) return new Places(undefined)
  const places = known.get(pool.of) ?? new Places(pool.size - 1)
  known.set(pool.of, places)
  return places
}

class Places implements HandlerPlaces {
  readonly most: number | undefined
  readonly #waiting = new Set<() => void>()
  #taken = 0

  constructor(most: number | undefined) {
    this.most = most
  }

  async take(signal?: AbortSignal, forMs?: number): Promise<() => void> {
    signal?.throwIfAborted()
    if (this.most === undefined || this.most === 0) return () => undefined
    if (this.#taken < this.most) this.#taken += 1
    else if (!(await this.#wait(signal, forMs))) return () => undefined
    let freed = false
    return () => {
      if (freed) return
      freed = true
      this.#free()
    }
  }

  /** Whoever frees a place hands it on, so that nobody overtakes. */
  #free(): void {
    const [next] = this.#waiting
    if (next === undefined) this.#taken -= 1
    else next()
  }

  /** False if the time was up first. */
  async #wait(signal: AbortSignal | undefined, forMs: number | undefined): Promise<boolean> {
    return await new Promise<boolean>((resolve, reject) => {
      const leave = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(enter)
        signal?.removeEventListener('abort', onAbort)
      }
      const onAbort = (): void => {
        leave()
        reject(signal?.reason as Error)
      }
      const enter = (): void => {
        leave()
        resolve(true)
      }
      const giveUp = (): void => {
        leave()
        resolve(false)
      }
      const timer = forMs === undefined ? undefined : setTimeout(giveUp, forMs)
      this.#waiting.add(enter)
      signal?.addEventListener('abort', onAbort, { once: true })
    })
  }
}
