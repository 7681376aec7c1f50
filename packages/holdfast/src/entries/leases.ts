/** `holdfast/leases`: leases and elections, on PostgreSQL. */
import type { Driver } from '../core/driver.ts'
import { postgresLeases } from '../engines/postgres/leases/lease-calls.ts'
import { type Leader, type LeaderOptions, leaderOver } from '../leases/leader.ts'
import { type Leases, leasesOver, type LeasesOptions } from '../leases/leases.ts'

export type { LeaseLostEvent, LossReason, RenewalFailedEvent } from '../core/events/event-map.ts'
export type { LeaseReading } from '../leases/engine.ts'
export type { Leader, LeaderOptions, LeadOptions, Term } from '../leases/leader.ts'
export type { Lease } from '../leases/lease.ts'
export type { LeaseOptions } from '../leases/lease-terms.ts'
export type { AcquireLeaseOptions, Leases, LeasesOptions } from '../leases/leases.ts'

/** Leases over a driver. */
export function createLeases<Tx>(driver: Driver<Tx>, given: LeasesOptions = {}): Leases<Tx> {
  return leasesOver(postgresLeases, driver, given)
}

/** Elections over a driver. */
export function createLeader<Tx>(
  driver: Driver<Tx>,
  given: LeaderOptions,
  { schema = 'holdfast' }: { readonly schema?: string } = {},
): Leader<Tx> {
  return leaderOver(postgresLeases, driver, given, { schema })
}
