import { isHoldfastError } from 'holdfast/errors'
import type { Runtime } from './runtime.ts'

/** What `@nestjs/terminus` reads. */
export type HealthResult<K extends string> = Record<
  K,
  { readonly status: 'up' | 'down'; readonly code?: string }
>

const within = '2 s'

/**
 * Whether a transaction can be opened and committed, for `@nestjs/terminus`, which is not imported. Down as soon as the
 * application shuts down, so that a balancer stops sending.
 *
 * @example this.health.check([() => this.holdfast.check('database')])
 */
export class HoldfastHealthIndicator {
  readonly #runtime: Runtime<unknown>
  #closing = false

  constructor(runtime: Runtime<unknown>) {
    this.#runtime = runtime
  }

  /** Up or down, with the code of the error; never more than that. */
  async check<K extends string = 'holdfast'>(key: K = 'holdfast' as K): Promise<HealthResult<K>> {
    return { [key]: await this.#look() } as HealthResult<K>
  }

  async #look(): Promise<HealthResult<string>[string]> {
    if (this.#closing) return { status: 'down', code: 'HOLDFAST_CLOSING' }
    try {
      const empty = (): Promise<void> => Promise.resolve()
      await this.#runtime.hf.transaction(empty, { deadline: within, retry: false })
      return { status: 'up' }
    } catch (error) {
      return { status: 'down', ...(isHoldfastError(error) ? { code: error.code } : {}) }
    }
  }

  /** Called by Nest before it stops to listen. */
  beforeApplicationShutdown(): void {
    this.#closing = true
  }
}
