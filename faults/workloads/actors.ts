import type { Actor } from '../crew/actor.ts'
import { claimsActor } from './claims-actor.ts'
import { guardActor } from './guard-actor.ts'
import { holdsActor } from './holds-actor.ts'
import { leasesActor } from './leases-actor.ts'
import { onceActor } from './once-actor.ts'
import { quotaActor } from './quota-actor.ts'
import { schedulesActor } from './schedules-actor.ts'
import { stockActor } from './stock-actor.ts'

/** What every process of the crew runs. */
export const actors: readonly Actor[] = [
  quotaActor,
  holdsActor,
  stockActor,
  claimsActor,
  leasesActor,
  schedulesActor,
  onceActor,
  guardActor,
]
