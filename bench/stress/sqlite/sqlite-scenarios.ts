import { setTimeout as pause } from 'node:timers/promises'
import type { StressScenario } from '../../harness/stress-scenario.ts'
import { sqliteBodies } from '../engine-bodies/scenario.ts'
import { type Played, processes, type Round, sqliteScenario } from './sqlite-rounds.ts'
import type { SqliteFile } from './sqlite-file.ts'
import type { SqliteJob } from './sqlite-jobs.ts'

const effectTable = 'CREATE TABLE effect (seq INTEGER PRIMARY KEY, about TEXT, id TEXT)'

/** Every change has its line, and every line that a caller was told of is there. */
async function playSeats(
  job: SqliteJob,
  { file, crew, about, seed, kill }: Round,
): Promise<Played> {
  const times = 15
  const told = await crew.round({ job, about, seed, times }, kill)
  const lost = file.number(
    'SELECT SUM(ABS(taken - (SELECT COUNT(*) FROM line WHERE seat = seat.id))) FROM seat',
  )
  const absent = told.answers.filter(
    (id) => file.number('SELECT COUNT(*) FROM line WHERE id = ?', id) !== 1,
  )
  return {
    operations: told.answers.length,
    told: { answers: ['done'], refused: told.refused },
    violations: [
      ...(lost > 0 ? [`${about}: ${lost} updates were lost`] : []),
      ...(absent.length > 0
        ? [`${about}: ${absent.length} that were told done are not there`]
        : []),
    ],
  }
}

const locks = sqliteScenario({
  about: 'check, let others in, write, under a lock',
  tables: [
    'CREATE TABLE seat (id INTEGER PRIMARY KEY, taken INTEGER NOT NULL)',
    'INSERT INTO seat VALUES (0, 0), (1, 0), (2, 0), (3, 0), (4, 0)',
    'CREATE TABLE line (seat INTEGER NOT NULL, id TEXT NOT NULL)',
  ],
  fullRounds: 60,
  jobs: ['locks'],
  controls: { no_lock: 'locks: none', deferred_transaction: 'locks: deferred' },
  play: playSeats,
})

const rows = sqliteScenario({
  about: 'change a few rows by what was read',
  tables: [
    'CREATE TABLE seat (id INTEGER PRIMARY KEY, taken INTEGER NOT NULL, version INTEGER NOT NULL DEFAULT 1)',
    'INSERT INTO seat (id, taken) VALUES (0, 0), (1, 0), (2, 0), (3, 0), (4, 0)',
    'CREATE TABLE line (seat INTEGER NOT NULL, id TEXT NOT NULL)',
  ],
  fullRounds: 60,
  jobs: ['rows', 'rows: version check'],
  controls: { no_version: 'locks: none', read_before_lock: 'rows: read before lock' },
  play: playSeats,
})

const once = sqliteScenario({
  about: '40 duplicates of one webhook at once',
  tables: [effectTable],
  fullRounds: 120,
  jobs: ['once'],
  controls: {
    no_key_row: 'once: no key row',
    no_transaction: 'once: no transaction',
    deferred_transaction: 'once: deferred',
  },
  async play(job, { file, crew, about, seed, kill }) {
    const times = 40 / processes
    const wanted = { job, about, seed, times }
    const given = await crew.round(wanted, kill)
    // Who heard nothing asks again; by now somebody has done it.
    const again = await crew.one({ ...wanted, times: 1 })
    const answers = [...given.answers, ...again.answers]
    const effects = file.db.prepare('SELECT id FROM effect WHERE about = ?').all(about)
    const violations: string[] = []
    if (effects.length !== 1) violations.push(`${about} had ${effects.length} effects`)
    const different = answers.filter((answer) => answer !== effects[0]?.['id'])
    if (different.length > 0)
      violations.push(`${about} was answered otherwise ${different.length} times`)
    return { operations: 40, violations, told: { answers, refused: given.refused } }
  },
})

const leases = sqliteScenario({
  about: 'holders that stand still for longer than their lease lasts, then write',
  tables: ['CREATE TABLE written (seq INTEGER PRIMARY KEY, lease TEXT, token INTEGER)'],
  fullRounds: 80,
  jobs: ['leases'],
  controls: { no_fence: 'leases: no fence', look_without_lock: 'leases: look without lock' },
  async play(job, { file, crew, about, seed, kill }) {
    const told = await crew.round({ job, about, seed, times: 3 }, kill)
    const stale = file.number(
      `SELECT COUNT(*) FROM (
         SELECT token, MAX(token) OVER (ORDER BY seq) AS highest FROM written WHERE lease = ?
       ) WHERE token < highest`,
      about,
    )
    const violations =
      stale > 0 ? [`${about}: ${stale} writes came after those of a later holder`] : []
    return { operations: told.answers.length, violations, told }
  },
})

const rowsOfARound = 24

/** Each row has had its effect, and once. */
function wrongEffects(file: SqliteFile, about: string, wanted: number): readonly string[] {
  const rows = file.db
    .prepare('SELECT COUNT(*) AS n FROM effect WHERE about = ? GROUP BY id')
    .all(about)
  const many = rows.filter(({ n }) => Number(n) !== 1).length
  return [
    ...(many > 0 ? [`${about}: ${many} were worked on more than once`] : []),
    ...(rows.length === wanted ? [] : [`${about}: ${rows.length} of ${wanted} were worked on`]),
  ]
}

const claims = sqliteScenario({
  about: 'workers that stand still for longer than their claims last',
  tables: [
    `CREATE TABLE job (id INTEGER PRIMARY KEY, batch TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'pending',
     claim_token TEXT, lease_until INTEGER, attempts INTEGER NOT NULL DEFAULT 0)`,
    effectTable,
  ],
  fullRounds: 60,
  jobs: ['claims'],
  controls: {
    no_fence: 'claims: no fence',
    no_transaction: 'claims: no transaction',
    deferred_transaction: 'claims: deferred',
  },
  async play(job, { file, crew, about, seed, kill }) {
    for (let at = 0; at < rowsOfARound; at += 1)
      file.db.prepare('INSERT INTO job (batch) VALUES (?)').run(about)
    const told = await crew.round({ job, about, seed, times: 0 }, kill)
    const violations = job === 'claims: deferred' ? [] : wrongEffects(file, about, rowsOfARound)
    return { operations: told.answers.length, violations, told }
  },
})

const ticksOfARound = 12
const weekUs = 7 * 86_400 * 1_000_000

async function playSchedule(job: SqliteJob, round: Round): Promise<Played> {
  const { file, crew, about, seed, kill } = round
  // As if everybody had slept for so many ticks.
  const last = (Math.floor((Date.now() * 1_000) / weekUs) - ticksOfARound) * weekUs
  file.db.prepare('INSERT INTO holdfast_schedule (name, last_tick) VALUES (?, ?)').run(about, last)
  const wanted = { job, about, seed, times: ticksOfARound / processes }
  const told = await crew.round(wanted, kill)
  const isControl = job === 'schedule: no transaction'
  // What a process that was killed had taken comes back when its lease is over.
  const open = (): number =>
    file.number('SELECT COUNT(*) FROM holdfast_tick WHERE name = ? AND state < 2', about)
  const answers = [...told.answers]
  for (let tries = 0; !isControl && tries < 500; tries += 1) {
    const again = await crew.one(wanted)
    answers.push(...again.answers)
    if (again.answers.length === 0 && open() === 0) break
    await pause(20)
  }
  const seen = file.db
    .prepare('SELECT COUNT(*) AS n FROM effect WHERE about = ? GROUP BY id')
    .all(about)
    .map(({ n }) => Number(n))
  const isKilled = kill !== undefined && job === 'schedule at least once'
  const violations = isKilled
    ? seen.length === ticksOfARound
      ? []
      : [`${about}: ${seen.length} of ${ticksOfARound} ticks ran`]
    : wrongEffects(file, about, ticksOfARound)
  return { operations: ticksOfARound, violations, told: { answers, refused: told.refused } }
}

const schedule = sqliteScenario({
  about: `${ticksOfARound} due ticks at once`,
  tables: [effectTable],
  fullRounds: 60,
  jobs: ['schedule', 'schedule at least once'],
  controls: { no_transaction: 'schedule: no transaction' },
  play: playSchedule,
})

/** What `npm run stress` can run on SQLite. */
export const sqliteScenarios: Readonly<Record<string, StressScenario>> = {
  locks,
  rows,
  once,
  leases,
  claims,
  schedule,
  bodies: sqliteBodies,
}
