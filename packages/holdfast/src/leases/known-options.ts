import type { KnownOptions } from '../core/known-options.ts'
import { resolveOptions } from '../tx/known-options.ts'
import type { AcquireLeaseOptions, Leases, LeasesOptions } from './index.ts'
import type { LeaderOptions, LeadOptions } from './leader.ts'
import type { LeaseOptions } from './lease-terms.ts'

export const leasesOptions: KnownOptions<LeasesOptions> = {
  ...resolveOptions,
  schema: 'text',
}

export const leaseOptions: KnownOptions<LeaseOptions> = {
  ttl: 'checked',
  renew: 'boolean',
  stopBefore: 'checked',
  delayAfterLoss: 'checked',
  note: 'text',
  scope: 'checked',
}

export const acquireLeaseOptions: KnownOptions<AcquireLeaseOptions> = {
  ...leaseOptions,
  wait: 'checked',
  retryEvery: 'checked',
  signal: 'signal',
}

export const readOptions: KnownOptions<Parameters<Leases<never>['read']>[1] & object> = {
  scope: 'checked',
}

export const forgetOptions: KnownOptions<Parameters<Leases<never>['forget']>[0]> = {
  idleFor: 'checked',
  limit: 'checked',
}

export const leaderOptions: KnownOptions<LeaderOptions> = {
  name: 'checked',
  ttl: 'checked',
  retryEvery: 'checked',
  session: 'checked',
  stopBefore: 'checked',
  delayAfterLoss: 'checked',
  note: 'text',
  scope: 'checked',
}

export const leadOptions: KnownOptions<LeadOptions> = {
  signal: 'signal',
  leaveAfter: 'checked',
}
