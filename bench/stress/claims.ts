import { startEngine } from '../engines/engine.ts'
import type { StressScenario } from '../harness/stress-scenario.ts'
import { attackClaims } from './claims-attack.ts'
import { idleMs as shortIdleMs, leaseMs, sweepMs } from './claims-table.ts'
import { attackLimit } from './limit-attack.ts'

const allTasks = 200_000
const controlTasks = 20_000
const allLimitSeconds = 60
/** Tasks per second that a slow machine gets done, with what is killed and paused. */
const tasksPerSecond = 600

export const claims: StressScenario = {
  about: 'workers that are killed, and paused past their lease; a limit for each key',
  engines: ['postgres', 'mariadb', 'mysql'],
  async run({ engine, seconds, seed, progress }) {
    progress(`starting ${engine}`)
    // A paused process must not keep its rows locked for as long as it sleeps.
    await using server = await startEngine(engine, { idleMs: shortIdleMs })
    const { idleMs } = server
    const tasks = seconds === undefined ? allTasks : Math.ceil(seconds * 0.4 * tasksPerSecond)
    const fenced = await attackClaims({
      url: await server.createDatabase('claims'),
      seed,
      tasks,
      idleMs,
      mode: 'fenced',
      progress,
    })
    progress('claims: control')
    const unfenced = await attackClaims({
      url: await server.createDatabase('unfenced'),
      seed,
      // It ends with the first duplicate; with few tasks all of them may be done before one wakes up.
      tasks: controlTasks,
      idleMs,
      mode: 'unfenced',
      untilDuplicate: true,
      progress,
    })
    // Limits of keys are of PostgreSQL alone.
    const limit =
      engine === 'postgres'
        ? await attackLimit({
            url: await server.createDatabase('limit'),
            seconds: seconds === undefined ? allLimitSeconds : Math.max(4, seconds * 0.3),
            progress,
          })
        : undefined
    return {
      operations: tasks + (limit?.operations ?? 0),
      violations: [...fenced.violations, ...(limit?.violations ?? [])],
      controls: {
        unfenced: unfenced.duplicates > 0 ? 'caught' : 'missed',
        ...(limit && { count_then_claim: limit.caught ? 'caught' : 'missed' }),
      },
      notes: [
        `claims: ${tasks} tasks in ${fenced.seconds.toFixed(1)} s, 8 processes, lease ${leaseMs} ms, a sweep every ${sweepMs} ms`,
        `claims: ${fenced.kills} killed, ${fenced.pauses} paused past the lease, ${fenced.recovered} claims recovered`,
        `claims: at most ${Math.round(fenced.strandedMs)} ms until a row was swept that nobody had locked; ${Math.round(fenced.overdueMs)} ms after its lease with those that a paused process had locked (for at most ${idleMs} ms)`,
        `claims: at most ${fenced.displaced} places from its own` +
          (fenced.overtakenMs === undefined
            ? ''
            : `, and ${Math.round(Math.max(0, fenced.overtakenMs))} ms after a row that is a window behind it: a paused process keeps what it is about to claim locked`),
        `claims, unfenced: ${unfenced.duplicates} effects twice after ${unfenced.pauses} pauses`,
        ...(limit?.notes ?? []),
      ],
    }
  },
}
