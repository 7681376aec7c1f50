import type { HttpAdapterHost } from '@nestjs/core'
import { isHoldfastError } from 'holdfast/errors'
import type { Runtime } from './runtime.ts'

/** What `@nestjs/terminus` reads. */
export type HealthResult<K extends string> = Record<
  K,
  { readonly status: 'up' | 'down'; readonly code?: string }
>

const within = '2 s'

/** What Nest calls first when it closes. Older versions of NestJS 11 do not call it. */
interface Closing {
  beforeClose?: () => unknown
}

/**
 * Whether a transaction can be opened and committed, for `@nestjs/terminus`, which is not imported. Down as soon as the
 * application shuts down, so that a balancer stops sending.
 *
 * @example this.health.check([() => this.holdfast.check('database')])
 */
export class HoldfastHealthIndicator {
  readonly #runtime: Runtime<unknown>
  readonly #host: HttpAdapterHost | undefined
  #closing = false

  constructor(runtime: Runtime<unknown>, host?: HttpAdapterHost) {
    this.#runtime = runtime
    this.#host = host
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

  /** Called by Nest. A global module is destroyed last; its server is told before the first. */
  onApplicationBootstrap(): void {
    const server = this.#host?.httpAdapter as Closing | undefined
    if (server === undefined || server === null) return
    const { beforeClose } = server
    server.beforeClose = () => {
      this.#closing = true
      return beforeClose?.call(server)
    }
  }

  /** Called by Nest, where nobody told the server. */
  onModuleDestroy(): void {
    this.#closing = true
  }
}
