import { withClient } from '@holdfast/testkit'
import type { Budget } from '../harness/budget.ts'
import type { StressResult } from '../harness/stress-scenario.ts'
import { startTeam, type Team } from '../harness/team.ts'

export interface RoomSetup {
  readonly url: string
  readonly seed: number
  readonly callers: number
}

export interface RoomOrder {
  readonly round: number
  /** Without the lock this is the control. */
  readonly locked: boolean
}

export interface RoomReport {
  readonly accepted: number
  /** Errors and retries, of which there should be none. */
  readonly troubles: readonly string[]
}

const processes = 2
const callers = 50
/** The control ends at its first over-acceptance. */
const controlRounds = 50

/**
 * Room for one, many takers: in each round every caller of every process checks whether the room is
 * empty and if so moves in. Exactly one may.
 */
export async function roomForOne(task: {
  readonly url: string
  readonly seed: number
  readonly budget: Budget
  readonly progress: (text: string) => void
}): Promise<StressResult> {
  const { url, seed, budget, progress } = task
  await withClient(url, async (client) => {
    await client.query('CREATE TABLE room (round int NOT NULL, taker text NOT NULL)')
    await client.query('CREATE INDEX ON room (round)')
  })
  const setup: RoomSetup = { url, seed, callers }
  await using team = await startTeam<RoomSetup, RoomOrder, RoomReport>(
    new URL('./room-callers.ts', import.meta.url),
    processes,
    setup,
  )

  const violations: string[] = []
  let round = 0
  for (; budget.allows(round); round += 1) {
    const { accepted, troubles } = await play(team, { round, locked: true })
    if (accepted !== 1) violations.push(`round ${round}: ${accepted} callers were accepted`)
    violations.push(...troubles.map((trouble) => `round ${round}: ${trouble}`))
    if (round % 20 === 19) progress(`room for one: ${round + 1} rounds`)
  }
  // What the callers say and what is in the table must agree.
  for (const { round: wrong, takers } of await overfull(url)) {
    violations.push(`round ${wrong}: ${takers} takers are in the table`)
  }

  let control = 0
  let most = 1
  for (; control < controlRounds && most <= 1; control += 1) {
    most = (await play(team, { round: -1 - control, locked: false })).accepted
  }
  return {
    operations: round * processes * callers,
    violations,
    controls: { no_lock: most > 1 ? 'caught' : 'missed' },
    notes: [
      `room for one: ${round} rounds of ${processes} processes with ${callers} callers each`,
      `without the lock: ${most} accepted at once in round ${control} of the control`,
    ],
  }
}

async function play(team: Team<RoomOrder, RoomReport>, order: RoomOrder): Promise<RoomReport> {
  const reports = await team.round(order)
  return {
    accepted: reports.reduce((sum, report) => sum + report.accepted, 0),
    troubles: reports.flatMap((report) => report.troubles),
  }
}

async function overfull(url: string): Promise<{ round: number; takers: number }[]> {
  return await withClient(url, async (client) => {
    const { rows } = await client.query<{ round: number; takers: number }>(
      'SELECT round, count(*)::int AS takers FROM room GROUP BY round HAVING count(*) <> 1',
    )
    return rows
  })
}
