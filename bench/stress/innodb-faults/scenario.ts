import { startInnodb } from '@holdfast/testkit'
import { newestServer } from '../../engines/engine.ts'
import { type Budget, rounds, seconds as lasting } from '../../harness/budget.ts'
import type { ControlOutcome, StressScenario } from '../../harness/stress-scenario.ts'
import { killedServer } from './killed-server.ts'
import { killedWriters, type WriterWay } from './killed-writers.ts'

/** As by default on both: what is committed is on the disk. */
const durable = { 'innodb-flush-log-at-trx-commit': '1', 'sync-binlog': '1' }
/** The control: what is committed is in the memory of the server for up to a second. */
const careless = { 'innodb-flush-log-at-trx-commit': '0', 'sync-binlog': '0' }

const full = { turns: 3, kills: 25 }
/** Of `--seconds`; the rest is for starting and for the controls. */
const share = { writers: 0.3, server: 0.25 }
const controlWays: readonly WriterWay[] = ['told before commit', 'no transaction']
const controlKills = 10

/** On MariaDB and MySQL: processes that write are killed at every command, and the server under load. */
export const innodbFaults: StressScenario = {
  about: 'processes killed at every command and in COMMIT, the server killed under load',
  async run({ engine, seconds, seed, progress }) {
    const name = newestServer(engine === 'mysql' ? 'mysql' : 'mariadb')
    const budget = (shareOf: number, count: number): Budget =>
      seconds === undefined ? rounds(count) : lasting(seconds * shareOf)
    progress(`starting ${name}`)
    await using server = await startInnodb(name, durable)
    const controls: Record<string, ControlOutcome> = {}
    const note = (control: string, found: readonly string[]): string => {
      controls[control] = found.length > 0 ? 'caught' : 'missed'
      progress(`control ${control}: ${controls[control]}`)
      return `${control}: ${found[0] ?? 'nothing went wrong'}`
    }
    const url = await server.createDatabase('writers')
    const writers = await killedWriters(url, 'guard', budget(share.writers, full.turns), false)
    progress(`${writers.killed} processes killed`)
    const kills = await killedServer(server, seed, budget(share.server, full.kills), false)
    progress(`the server was killed ${kills.kills} times`)
    const at = Object.entries(writers.at).map(([cut, times]) => `${cut} ${times}`)
    const { done, unknown, failed } = kills.told
    const notes = [
      `${writers.killed} processes killed (${at.join(', ')})`,
      `the server was killed ${kills.kills} times; callers were told: done ${done}, unknown ${unknown}, failed ${failed}`,
    ]
    for (const way of controlWays) {
      const control = await killedWriters(
        await server.createDatabase('control'),
        way,
        rounds(1),
        true,
      )
      notes.push(note(way.replaceAll(' ', '_'), control.violations))
    }
    await using weak = await startInnodb(name, careless)
    const lost = await killedServer(weak, seed, rounds(controlKills), true)
    notes.push(note('log_not_flushed', lost.violations))
    const violations = [...writers.violations, ...kills.violations]
    if (kills.findings.length > 0)
      violations.push(`doctor says of a durable server: ${kills.findings.join(', ')}`)
    if (!lost.findings.includes('log-not-flushed'))
      violations.push('doctor says nothing of a server that does not write its log at COMMIT')
    return {
      operations: writers.killed + done + unknown + failed,
      violations,
      controls,
      notes,
      figures: { processes_killed: writers.killed, server_kills: kills.kills, unknown },
    }
  },
}
