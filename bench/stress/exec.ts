import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgres } from '@holdfast/testkit'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { migrate } from '../../packages/holdfast/src/schema/index.ts'
import { type Budget, rounds, seconds as lasting } from '../harness/budget.ts'
import { freePort } from '../../testkit/src/servers/free-port.ts'
import { openPool } from '../harness/open-pool.ts'
import type { StressScenario } from '../harness/stress-scenario.ts'
import { crew, type Grounds, type Outcome } from './exec-crew.ts'

const members = 20
/** For the control whose commands last. */
const few = 3
const fullRounds = 400

export const exec: StressScenario = {
  about:
    'commands under one lease, 20 at once, while holders, commands and guardians are killed or stopped',
  async run({ seconds, seed, progress }) {
    progress('starting PostgreSQL')
    await using server = await startPostgres()
    const url = await server.createDatabase('exec')
    const pool = await openPool(url, 2)
    pool.on('error', () => undefined)
    await migrate(fromPg(pool))
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-exec-'))
    const endConnections = async (): Promise<void> => {
      await pool.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE application_name = 'holdfast' AND datname = current_database()`,
      )
    }
    const play = async (
      name: string,
      budget: () => Budget,
      how: Partial<Grounds> = {},
    ): Promise<Outcome & Seen> => {
      const log = join(folder, name)
      writeFileSync(log, '')
      const grounds = { url, log, port: await freePort('127.0.0.1'), ...how }
      const size = how.cutting === undefined ? members : few
      const outcome = await crew(grounds, seed, size, budget, endConnections)
      return { ...outcome, ...seenIn(log) }
    }
    try {
      progress('commands under a lease')
      const budget = (): Budget => (seconds === undefined ? rounds(fullRounds) : lasting(seconds))
      const attack = await play('lease', budget, { hurry: seconds !== undefined })
      progress('control: without the lease')
      const bare = await play('bare', () => rounds(2 * members), { bare: true })
      progress('control: a guardian that does not care')
      const cutting = new URL('./exec-careless.ts', import.meta.url)
      const careless = await play('careless', () => rounds(few), { cutting })
      const violations = [
        ...attack.wrongCodes.map((each) => `a command that nobody hurt: exit code ${each}`),
        ...Array.from({ length: attack.overlaps }, () => 'a command ran beside another'),
        ...Array.from(
          { length: attack.lower },
          () => 'a command had a lower token than one before',
        ),
      ]
      if (attack.started === 0) violations.push('nothing ran')
      const hurt = Object.entries(attack.attacks)
        .map(([what, times]) => `${what} ${times}`)
        .join(', ')
      return {
        operations: attack.started,
        violations,
        controls: {
          no_lease: bare.overlaps > 0 ? 'caught' : 'missed',
          careless_guardian: careless.overlaps > 0 ? 'caught' : 'missed',
        },
        notes: [
          `${attack.started} commands ran one at a time, ${attack.ran} to the exit code they were to have`,
          `killed or stopped: ${hurt}`,
          `ended by exec, because the machine was too busy to renew: ${attack.lost}`,
          `careless_guardian: ${careless.overlaps} of ${careless.started + careless.overlaps} ran beside another`,
          `no_lease: ${bare.overlaps} of ${bare.started + bare.overlaps} ran beside another`,
        ],
        coverage: { attacks: attack.attacks, endings: attack.endings },
        figures: { ran: attack.ran },
      }
    } finally {
      await pool.end()
      rmSync(folder, { recursive: true })
    }
  },
}

interface Seen {
  readonly started: number
  readonly overlaps: number
  /** Commands whose token was not higher than that of the one before. */
  readonly lower: number
}

function seenIn(log: string): Seen {
  const lines = readFileSync(log, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => line.split(' '))
  const tokens = lines.flatMap(([what, , , token]) =>
    what === 'start' ? [BigInt(token ?? 0)] : [],
  )
  return {
    started: tokens.length,
    overlaps: lines.filter(([what]) => what === 'overlap').length,
    lower: tokens.filter((token, at) => at > 0 && token <= (tokens[at - 1] as bigint)).length,
  }
}
