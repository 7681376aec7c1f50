import type { WorkloadChecks } from '../core/model.ts'
import { claims } from './claims.ts'
import { guard } from './guard.ts'
import { holds } from './holds.ts'
import { leases } from './leases.ts'
import { once } from './once.ts'
import { quota } from './quota.ts'
import { schedules } from './schedules.ts'
import { stock } from './stock.ts'

/** Every workload, as the harness sees it. */
export const allWorkloads: readonly WorkloadChecks[] = [
  quota,
  holds,
  stock,
  claims,
  leases,
  schedules,
  once,
  guard,
]
