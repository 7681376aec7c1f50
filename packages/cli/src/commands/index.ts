import type { Command } from '../command.ts'
import { audit } from './ledger/audit.ts'
import { cancel } from './cancel.ts'
import { claims } from './claims.ts'
import { console } from './console.ts'
import { doctor } from './schema/doctor.ts'
import { exec } from './exec.ts'
import { grants } from './schema/grants.ts'
import { holds } from './ledger/holds.ts'
import { init } from './init.ts'
import { jobs } from './jobs.ts'
import { leases } from './leases.ts'
import { ledger } from './ledger/ledger.ts'
import { locks } from './locks.ts'
import { maintain } from './ledger/maintain.ts'
import { migrate } from './schema/migrate.ts'
import { plan } from './schema/plan.ts'
import { schedules } from './schedules.ts'
import { shards } from './shards.ts'
import { skill } from './skill.ts'
import { top } from './top.ts'
import { why } from './why.ts'

/** Every command, in the order `--help` lists them. */
export const commands: readonly Command[] = [
  init,
  migrate,
  plan,
  grants,
  doctor,
  exec,
  locks,
  top,
  why,
  cancel,
  ledger,
  holds,
  audit,
  maintain,
  claims,
  jobs,
  leases,
  schedules,
  shards,
  console,
  skill,
]
