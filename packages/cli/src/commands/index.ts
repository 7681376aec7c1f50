import type { Command } from '../command.ts'
import { audit } from './audit.ts'
import { doctor } from './doctor.ts'
import { grants } from './grants.ts'
import { maintain } from './maintain.ts'
import { migrate } from './migrate.ts'
import { plan } from './plan.ts'

/** Every command, in the order `--help` lists them. */
export const commands: readonly Command[] = [migrate, plan, doctor, grants, audit, maintain]
