import { type Budget, rounds, seconds as lasting } from '../../harness/budget.ts'
import { randomFor } from '../../harness/random.ts'
import type { ControlOutcome, StressScenario } from '../../harness/stress-scenario.ts'
import { type Kill, openSqliteCrew, type RoundTold, type SqliteCrew } from './sqlite-crew.ts'
import { openSqliteFile, type SqliteFile } from './sqlite-file.ts'
import type { SqliteJob } from './sqlite-jobs.ts'

export const processes = 4
/** Of `--seconds`; the rest is for starting and for the controls. */
const roundsShare = 0.6
/** In every so many rounds one process is killed, some time after it was told to begin. */
const killEvery = 3
const killAfterMs = { least: 0, most: 60 }
/** The control ends with what it was looking for, and after so many rounds without. */
const controlRounds = 15

/** One round, as a scenario plays it. */
export interface Round {
  readonly file: SqliteFile
  readonly crew: SqliteCrew
  readonly about: string
  readonly seed: number
  /** Not in controls, which must fail by themselves. */
  readonly kill: Kill | undefined
}

/** What a round has shown. */
export interface Played {
  readonly operations: number
  readonly violations: readonly string[]
  readonly told: RoundTold
}

/** A promise, and how it is attacked by several processes on one file. */
export interface SqliteAttack {
  readonly about: string
  readonly tables: readonly string[]
  readonly fullRounds: number
  play(job: SqliteJob, round: Round): Promise<Played>
  /** With the protection, of which each is played in turn. */
  readonly jobs: readonly SqliteJob[]
  /** Without it, by the name of the control. */
  readonly controls: Readonly<Record<string, SqliteJob>>
}

/** The scenario of an attack: rounds with the protection, then each control on a file of its own. */
export function sqliteScenario(attack: SqliteAttack): StressScenario {
  return {
    about: `SQLite: ${attack.about}, in ${processes} processes, some killed`,
    async run({ seconds, seed, progress }) {
      const budget = (): Budget =>
        seconds === undefined ? rounds(attack.fullRounds) : lasting(seconds * roundsShare)
      const all = await playRounds(attack, attack.jobs, budget, seed, true, progress)
      const controls: Record<string, ControlOutcome> = {}
      const notes = [
        `${all.rounds} rounds, ${all.operations} operations; ${all.killed} processes killed`,
        `told: ${counted(all.answers)}`,
      ]
      for (const [name, job] of Object.entries(attack.controls)) {
        progress(`control ${name}`)
        const weak = await playRounds(attack, [job], () => rounds(controlRounds), seed, false)
        controls[name] = weak.violations.length > 0 ? 'caught' : 'missed'
        notes.push(`${name}: ${weak.violations[0] ?? 'nothing went wrong'}`)
      }
      const { operations, violations } = all
      return { operations, violations, controls, notes, figures: { killed: all.killed } }
    },
  }
}

interface AllPlayed {
  readonly rounds: number
  readonly operations: number
  readonly killed: number
  readonly violations: readonly string[]
  readonly answers: readonly string[]
}

async function playRounds(
  attack: SqliteAttack,
  jobs: readonly SqliteJob[],
  begin: () => Budget,
  seed: number,
  isProtected: boolean,
  progress: (text: string) => void = () => undefined,
): Promise<AllPlayed> {
  await using file = await openSqliteFile(attack.tables)
  await using crew = await openSqliteCrew(file.path, processes)
  const violations: string[] = []
  const answers: string[] = []
  const budget = begin()
  let [round, operations] = [0, 0]
  for (; budget.allows(round) && (isProtected || violations.length === 0); round += 1) {
    const random = randomFor(seed, round)
    const member = random.integer(0, processes - 1)
    const afterMs = random.integer(killAfterMs.least, killAfterMs.most)
    const kill = isProtected && round % killEvery === 1 ? { member, afterMs } : undefined
    const job = jobs[round % jobs.length] as SqliteJob
    const about = `round-${round}`
    const played = await attack.play(job, { file, crew, about, seed: seed + round, kill })
    operations += played.operations
    violations.push(...played.violations)
    for (const refusal of played.told.refused)
      violations.push(`${about}: a caller was refused (${refusal}) and not served`)
    if (isProtected) answers.push(...played.told.answers.map(shortened))
    if (round % 20 === 19) progress(`${round + 1} rounds, ${crew.killed} processes killed`)
  }
  return { rounds: round, operations, killed: crew.killed, violations, answers }
}

/** An id is one of many answers that mean the same. */
function shortened(answer: string): string {
  return /^[\da-f-]{36}$/.test(answer) ? 'answered' : answer
}

function counted(answers: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const answer of answers) counts.set(answer, (counts.get(answer) ?? 0) + 1)
  return [...counts].map(([answer, count]) => `${answer} ${count}`).join(', ')
}
