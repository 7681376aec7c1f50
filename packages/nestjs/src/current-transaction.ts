import { UsageError } from 'holdfast/errors'
import type { AmbientTransactions } from './ambient.ts'

/**
 * The transaction around the call, injected: of the method under `@Guarded`, `@Once`, `@Tick` or `@Idempotent` that is
 * running, and of whatever that method calls.
 *
 * @example constructor(private readonly current: CurrentTransaction<PoolClient>) {}
 */
export class CurrentTransaction<Tx> {
  readonly #ambient: AmbientTransactions<Tx>

  constructor(ambient: AmbientTransactions<Tx>) {
    this.#ambient = ambient
  }

  /** Whether there is one. */
  get isOpen(): boolean {
    return this.#ambient.find() !== undefined
  }

  /**
   * The client's own handle.
   *
   * @throws TX_HANDLE_ENDED where none is open: the pool instead would write outside of every lock
   */
  get tx(): Tx {
    const tx = this.#ambient.find()
    if (tx !== undefined) return tx
    const subject =
      'CurrentTransaction.tx: no transaction is open here; read it in a method under @Guarded, @Once, @Tick or @Idempotent, await all that uses it, and do not keep tx for later'
    throw new UsageError('TX_HANDLE_ENDED', { details: { subject } })
  }
}
