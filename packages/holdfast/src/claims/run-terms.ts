import { durationMs } from '../core/options/duration.ts'
import { invalid, positive } from './layout.ts'
import {
  type RowHandler,
  type RunOptions,
  runOptions,
  type TransactionHandler,
} from './run-options.ts'
import { assertFunction, assertText, objectGiven } from '../core/options/given.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'

/** `RunOptions`, checked. */
export interface RunTerms<Tx, R> {
  /** One of both. */
  readonly handler: RowHandler<R>['handler'] | undefined
  readonly transactionHandler: TransactionHandler<Tx, R>['transactionHandler'] | undefined
  readonly listen: string | undefined
  /** `undefined`: what is usual, or what there is room for. */
  readonly concurrency: number | undefined
  readonly poll: { readonly minMs: number; readonly maxMs: number }
  /** `undefined`: that is left to others. */
  readonly recoverMs: number | undefined
}

/** Before anything is begun. @throws OPTION_INVALID */
export function runTerms<Tx, R>(given: RunOptions<Tx, R>, leaseMs: number): RunTerms<Tx, R> {
  const options = optionsGiven(given, runOptions as KnownOptions<typeof given>)
  const { concurrency, handler, transactionHandler, recoverEvery = leaseMs, listen } = options
  const { min = 50, max = '2 s' } = objectGiven(options.poll, 'poll')
  if (concurrency !== undefined) positive(concurrency, 'concurrency')
  assertText(listen, 'listen')
  if (handler === undefined && transactionHandler === undefined)
    throw invalid('handler', 'or transactionHandler is needed')
  if (handler !== undefined && transactionHandler !== undefined)
    throw invalid('transactionHandler', 'and handler exclude each other: one would never run')
  if (handler !== undefined) assertFunction(handler, 'handler')
  if (transactionHandler !== undefined) assertFunction(transactionHandler, 'transactionHandler')
  return {
    concurrency,
    handler,
    transactionHandler,
    listen,
    poll: { minMs: durationMs(min, 'poll.min'), maxMs: durationMs(max, 'poll.max') },
    recoverMs: recoverEvery === false ? undefined : durationMs(recoverEvery, 'recoverEvery'),
  }
}
