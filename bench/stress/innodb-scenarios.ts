import type { StressScenario } from '../harness/stress-scenario.ts'
import { innodbBodies } from './engine-bodies/scenario.ts'
import { innodbFaults } from './innodb-faults/scenario.ts'

/** What `npm run stress` runs on MariaDB and MySQL otherwise than on PostgreSQL. */
export const innodbScenarios: Readonly<Record<string, StressScenario>> = {
  bodies: innodbBodies,
  faults: innodbFaults,
}
