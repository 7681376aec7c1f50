import { type Channel, channel } from 'node:diagnostics_channel'

/** Every event, by channel. docs/events.md lists names and fields. */
export const channels: {
  /** Claims were lost: their lease was over. */
  readonly claimsLost: Channel
  /** Rows whose lease was over were given back. */
  readonly claimsRecovered: Channel
  /** A worker or a handler of claims failed; the worker goes on. */
  readonly claimsTrouble: Channel
  /** An error of this library was made. */
  readonly error: Channel
  /** A sweeper has looked for what is due. */
  readonly ledgerSweep: Channel
  /** Something went wrong in an election; it goes on. */
  readonly leaderTrouble: Channel
  /** A lease was acquired. */
  readonly leaseAcquired: Channel
  /** A lease was lost. */
  readonly leaseLost: Channel
  /** A renewal did not get through; another try follows. */
  readonly leaseRenewalFailed: Channel
  /** A lock was granted. */
  readonly lockAcquired: Channel
  /** A lock has been held longer than the watch allows. */
  readonly lockHeldLong: Channel
  /** Locks were taken in an order that can deadlock. */
  readonly lockOrder: Channel
  /** A tick of a schedule has ended here, or was dropped. */
  readonly scheduleTick: Channel
  /** A schedule could not ask the database; it goes on. */
  readonly scheduleTrouble: Channel
  /** A transaction is about to be run again. */
  readonly txRetry: Channel
} = {
  claimsLost: channel('holdfast:claims.lost'),
  claimsRecovered: channel('holdfast:claims.recovered'),
  claimsTrouble: channel('holdfast:claims.trouble'),
  error: channel('holdfast:error'),
  ledgerSweep: channel('holdfast:ledger.sweep'),
  leaderTrouble: channel('holdfast:leader.trouble'),
  leaseAcquired: channel('holdfast:lease.acquired'),
  leaseLost: channel('holdfast:lease.lost'),
  leaseRenewalFailed: channel('holdfast:lease.renewal-failed'),
  lockAcquired: channel('holdfast:lock.acquired'),
  lockHeldLong: channel('holdfast:lock.held-long'),
  lockOrder: channel('holdfast:lock.order'),
  scheduleTick: channel('holdfast:schedule.tick'),
  scheduleTrouble: channel('holdfast:schedule.trouble'),
  txRetry: channel('holdfast:tx.retry'),
}

/** Publishes only when someone listens, so an idle channel costs one property read. */
export function publish(to: Channel, message: object): void {
  if (to.hasSubscribers) to.publish(message)
}
