import type { Driver } from '../core/driver.ts'
import { type Attempt, runTransaction } from './run.ts'
import { assertFunction } from '../core/options/given.ts'
import { optionsGiven } from '../core/options/known-options.ts'
import { assertDriver } from '../core/client-kind.ts'
import {
  assertRunOptions,
  type RunOptions,
  runOptions,
  type TxOptions,
  txOptions,
  withTxDefaults,
} from './run-options.ts'

export type { ResolveOptions } from './ask-again.ts'
export type { RetryInfo, RetryPolicy } from './retry.ts'
export type { Attempt } from './run.ts'
export type { RunOptions, TxOptions } from './run-options.ts'

/** Transactions in the caller's own client. */
export interface Transactions<Tx> {
  /**
   * Opens a transaction, runs the body with the client's own handle, commits, and runs the whole
   * of it again on a serialization failure or deadlock.
   *
   * @example await hf.tx.run(async (tx) => { … }, { isolation: 'serializable' })
   * @throws TX_NESTED, TX_ROLLED_BACK, TX_SERIALIZATION, TX_DEADLOCK, TX_DEADLINE, COMMIT_UNKNOWN,
   * CONNECTION_LOST
   */
  run<T>(body: (tx: Tx, attempt: Attempt) => Promise<T>, options?: RunOptions): Promise<T>
}

/** Transactions over a driver. */
export function createTransactions<Tx>(
  driver: Driver<Tx>,
  given: TxOptions = {},
): Transactions<Tx> {
  assertDriver(driver, 'createTransactions', 'any')
  const defaults = optionsGiven(given, txOptions)
  assertRunOptions(defaults)
  return {
    async run(body, options) {
      assertFunction(body)
      return await runTransaction(
        driver,
        (transaction, attempt) => body(transaction.native, attempt),
        withTxDefaults(defaults, optionsGiven(options, runOptions)),
      )
    },
  }
}
