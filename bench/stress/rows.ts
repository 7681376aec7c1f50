import { startEngine } from '../engines/engine.ts'
import { rounds, seconds as lasting } from '../harness/budget.ts'
import type { ControlOutcome, StressScenario } from '../harness/stress-scenario.ts'
import { startTeam, type Team } from '../harness/team.ts'
import { openRowStore, type RowStore } from './rows-store.ts'

export interface RowSetup {
  readonly url: string
  readonly seed: number
  readonly callers: number
  /** How many changes each caller makes in a round. */
  readonly times: number
  readonly accounts: number
}

const protectedWays = ['lock', 'optimistic', 'version check'] as const
const controlWays = ['read before lock', 'no version'] as const
export type RowWay = (typeof protectedWays)[number] | (typeof controlWays)[number]

export interface RowOrder {
  readonly round: number
  readonly way: RowWay
}

export interface RowReport {
  /** Lines of those who were told that it is done, and of those who were told that they have lost. */
  readonly done: readonly string[]
  readonly refused: readonly string[]
  readonly troubles: readonly string[]
}

const processes = 2
const callers = 12
const times = 6
const accounts = 4
const fullRounds = 150
/** Of `--seconds`; the rest is for starting and for the controls. */
const roundsShare = 0.6
/** A control ends with the first update that it has lost. */
const controlRounds = 20

export const rows: StressScenario = {
  about: 'many callers change a few rows by what they have read: no update may be lost',
  engines: ['postgres', 'mariadb', 'mysql'],
  async run({ engine, seconds, seed, progress }) {
    progress(`starting ${engine}`)
    await using server = await startEngine(engine)
    const play = async <T>(
      prefix: string,
      body: (team: Team<RowOrder, RowReport>, store: RowStore<unknown>) => Promise<T>,
    ): Promise<T> => {
      const url = await server.createDatabase(prefix)
      await using store = await openRowStore(url, 1)
      await store.prepare(accounts)
      const setup = { url, seed, callers, times, accounts }
      const program = new URL('./rows-callers.ts', import.meta.url)
      await using team = await startTeam<RowSetup, RowOrder, RowReport>(program, processes, setup)
      return await body(team, store)
    }

    const violations: string[] = []
    const told = { done: 0, refused: 0 }
    let round = 0
    await play('rows', async (team, store) => {
      const budget = seconds === undefined ? rounds(fullRounds) : lasting(seconds * roundsShare)
      for (; round < protectedWays.length || budget.allows(round); round += 1) {
        const way = protectedWays[round % protectedWays.length] ?? 'lock'
        const reports = await team.round({ round, way })
        const wrong = await wrongIn(store, reports)
        violations.push(...wrong.map((each) => `round ${round} (${way}): ${each}`))
        for (const { done, refused } of reports) {
          told.done += done.length
          told.refused += refused.length
        }
        if (round % 20 === 19) progress(`${round + 1} rounds`)
      }
    })
    const controls: Record<string, ControlOutcome> = {}
    const notes = [
      `${round} rounds of ${processes} processes with ${callers} callers each, ${times} changes a caller`,
      `told: done ${told.done}, lost to another ${told.refused}`,
    ]
    for (const way of controlWays) {
      let wrong: readonly string[] = []
      await play('control', async (team, store) => {
        for (let tried = 0; tried < controlRounds && wrong.length === 0; tried += 1)
          wrong = await wrongIn(store, await team.round({ round: -tried, way }))
      })
      const name = way.replaceAll(' ', '_')
      controls[name] = wrong.length > 0 ? 'caught' : 'missed'
      notes.push(`${name}: ${wrong[0] ?? 'nothing went wrong'}`)
    }
    return { operations: told.done + told.refused, violations, controls, notes }
  },
}

/** Each account is as often changed as it has lines, and each line is there of which its caller was told so. */
async function wrongIn(
  store: RowStore<unknown>,
  reports: readonly RowReport[],
): Promise<readonly string[]> {
  const [done, refused] = [
    reports.flatMap((report) => report.done),
    reports.flatMap((report) => report.refused),
  ]
  const there = await store.linesOf([...done, ...refused])
  const lost = (await store.accounts()).reduce((sum, { v, lines }) => sum + Math.abs(lines - v), 0)
  const absent = done.filter((id) => !there.has(id)).length
  const present = refused.filter((id) => there.has(id)).length
  return [
    ...(lost > 0 ? [`${lost} updates were lost`] : []),
    ...(absent > 0 ? [`${absent} that were told done are not there`] : []),
    ...(present > 0 ? [`${present} that were told that they have lost are there`] : []),
    ...reports.flatMap(({ troubles }) => troubles),
  ]
}
