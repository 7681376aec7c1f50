import { type Channel, channel } from 'node:diagnostics_channel'

/** Every event, by channel. docs/events.md lists names and fields. */
export const channels: {
  /** An error of this library was made. */
  readonly error: Channel
  /** A sweeper has looked for what is due. */
  readonly ledgerSweep: Channel
  /** A lock was granted. */
  readonly lockAcquired: Channel
  /** A lock has been held longer than the watch allows. */
  readonly lockHeldLong: Channel
  /** Locks were taken in an order that can deadlock. */
  readonly lockOrder: Channel
  /** A transaction is about to be run again. */
  readonly txRetry: Channel
} = {
  error: channel('holdfast:error'),
  ledgerSweep: channel('holdfast:ledger.sweep'),
  lockAcquired: channel('holdfast:lock.acquired'),
  lockHeldLong: channel('holdfast:lock.held-long'),
  lockOrder: channel('holdfast:lock.order'),
  txRetry: channel('holdfast:tx.retry'),
}

/** Publishes only when someone listens, so an idle channel costs one property read. */
export function publish(to: Channel, message: object): void {
  if (to.hasSubscribers) to.publish(message)
}
