import type { Budget } from '../harness/budget.ts'
import type { StressResult } from '../harness/stress-scenario.ts'
import { startTeam, type Team } from '../harness/team.ts'
import { type Exclusion, openLockStore } from './lock-store.ts'

export interface RoomSetup {
  readonly url: string
  readonly seed: number
  readonly callers: number
}

export interface RoomOrder {
  readonly round: number
  /** All but a guard are controls. */
  readonly exclusion: Exclusion
}

export interface RoomReport {
  readonly accepted: number
  /** Errors and retries, of which there should be none. */
  readonly troubles: readonly string[]
}

const processes = 2
const callers = 50
/** A control ends at its first over-acceptance. */
const controlRounds = 50
const controlNames: Readonly<Record<Exclusion, string>> = {
  guard: 'guard',
  none: 'no_lock',
  'session lock': 'lock_released_before_commit',
}

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
  await using store = await openLockStore(url, 1)
  await store.prepare()
  const setup: RoomSetup = { url, seed, callers }
  await using team = await startTeam<RoomSetup, RoomOrder, RoomReport>(
    new URL('./room-callers.ts', import.meta.url),
    processes,
    setup,
  )

  const violations: string[] = []
  let round = 0
  for (; budget.allows(round); round += 1) {
    const { accepted, troubles } = await play(team, { round, exclusion: 'guard' })
    if (accepted !== 1) violations.push(`round ${round}: ${accepted} callers were accepted`)
    violations.push(...troubles.map((trouble) => `round ${round}: ${trouble}`))
    if (round % 20 === 19) progress(`room for one: ${round + 1} rounds`)
  }
  // What the callers say and what is in the table must agree.
  for (const { round: wrong, takers } of await store.overfull()) {
    violations.push(`round ${wrong}: ${takers} takers are in the table`)
  }

  const controls: Record<string, 'caught' | 'missed'> = {}
  const notes = [
    `room for one: ${round} rounds of ${processes} processes with ${callers} callers each`,
  ]
  let control = 0
  for (const exclusion of store.exclusions) {
    let most = 1
    for (let tried = 0; tried < controlRounds && most <= 1; tried += 1) {
      control += 1
      most = (await play(team, { round: -control, exclusion })).accepted
    }
    controls[controlNames[exclusion]] = most > 1 ? 'caught' : 'missed'
    notes.push(`${controlNames[exclusion]}: ${most} accepted at once`)
  }
  return {
    operations: round * processes * callers,
    violations,
    controls,
    notes,
  }
}

async function play(team: Team<RoomOrder, RoomReport>, order: RoomOrder): Promise<RoomReport> {
  const reports = await team.round(order)
  return {
    accepted: reports.reduce((sum, report) => sum + report.accepted, 0),
    troubles: reports.flatMap((report) => report.troubles),
  }
}
