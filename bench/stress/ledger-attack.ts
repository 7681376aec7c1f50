import { withClient } from '@holdfast/testkit'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { migrateFiles } from '../../packages/holdfast/src/schema/migrate.ts'
import type { SchemaFiles } from '../../packages/holdfast/src/schema/schema-files.ts'
import type { Budget } from '../harness/budget.ts'
import { openPool } from '../harness/open-pool.ts'
import { startTeam, type Team } from '../harness/team.ts'
import type { Accounts } from './ledger-choices.ts'
import { createWitness } from './ledger-witness.ts'

export interface AttackSetup {
  readonly seed: number
  readonly callers: number
}

export interface AttackOrder {
  readonly url: string
  readonly schema: string
  readonly accounts: Accounts
  readonly round: number
  /** Operations per caller, besides the ones that all processes begin with. */
  readonly steps: number
}

export interface AttackReport {
  readonly calls: number
  /** Errors, of which there should be none. */
  readonly troubles: readonly string[]
}

export type AttackTeam = Team<AttackOrder, AttackReport>

const processes = 4
const callers = 64

export async function startAttackers(seed: number): Promise<AttackTeam> {
  return await startTeam<AttackSetup, AttackOrder, AttackReport>(
    new URL('./ledger-callers.ts', import.meta.url),
    processes,
    { seed, callers },
  )
}

export interface Attack {
  readonly url: string
  readonly team: AttackTeam
  readonly schema: string
  readonly files: SchemaFiles
  readonly accounts: Accounts
  readonly steps: number
  readonly budget: Budget
  readonly progress: (text: string) => void
}

/** Installs a ledger and lets all processes loose on it, round after round. */
export async function attack(task: Attack): Promise<{ calls: number; troubles: string[] }> {
  const { url, team, schema, files, accounts, steps, budget, progress } = task
  const pool = await openPool(url, 1)
  try {
    await migrateFiles(fromPg(pool), files, { schema })
  } finally {
    await pool.end()
  }
  await withClient(url, async (client) => await createWitness(client, schema))
  let calls = 0
  const troubles: string[] = []
  for (let round = 0; budget.allows(round); round += 1) {
    for (const report of await team.round({ url, schema, accounts, round, steps })) {
      calls += report.calls
      troubles.push(...report.troubles)
    }
    if (round % 10 === 0) progress(`${schema}: round ${round + 1}, ${calls} calls so far`)
  }
  return { calls, troubles }
}

/** Operations of one round, each counted once however often it is sent. */
export function operationsPerRound(steps: number): number {
  return (
    processes * callers * (steps - Math.floor(steps / 5)) + callers * (1 + Math.floor(steps / 5))
  )
}
