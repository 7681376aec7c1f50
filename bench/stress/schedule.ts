import { setTimeout as pause } from 'node:timers/promises'
import { startPostgres, waitUntil, withClient } from '@holdfast/testkit'
import type { Client } from 'pg'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { migrate } from '../../packages/holdfast/src/schema/index.ts'
import { startMortalCrew } from '../harness/mortal-crew.ts'
import { openPool } from '../harness/open-pool.ts'
import { randomFor } from '../harness/random.ts'
import type { StressScenario } from '../harness/stress-scenario.ts'
import { everyMs, type InstanceSetup } from './schedule-setup.ts'

/** By how much the clocks of the five are wrong. Two of them hardly differ, as with NTP. */
const skewsMs = [-30_000, -12_000, 0, 800, 30_000]
const fullTicks = 1_000
/** Of `--seconds`; the rest is for starting, for what has to be settled after, and for the control. */
const ticksShare = 0.5
const killEveryMs = { least: 400, most: 1_600 }
const controlLimitMs = 60_000
const guarantees = ['transactional', 'at-least-once', 'at-most-once'] as const

export const schedule: StressScenario = {
  about: `a tick every ${everyMs} ms in five processes with clocks wrong by up to 30 s, timers late by up to 500 ms, some killed`,
  async run({ seconds, seed, progress }) {
    progress('starting PostgreSQL')
    await using server = await startPostgres()
    const url = await server.createDatabase('schedule')
    const pool = await openPool(url, 1)
    await migrate(fromPg(pool))
    await pool.end()
    const enough = (done: number, sinceMs: number): boolean =>
      seconds === undefined ? done >= fullTicks : sinceMs >= seconds * ticksShare * 1_000
    return await withClient(url, async (client) => {
      await client.query(
        'CREATE TABLE effect (name text NOT NULL, tick timestamptz NOT NULL, by int, attempt int)',
      )
      const killed = await runSchedules(client, url, enough, seed, progress)
      const { violations, notes, operations } = await judge(client)
      const doubled = await runControl(client, url)
      return {
        operations,
        violations,
        controls: { try_lock: doubled > 0 ? 'caught' : 'missed' },
        notes: [
          `${killed} processes were killed`,
          ...notes,
          `with a lock that is only tried: ${doubled} ticks ran more than once`,
        ],
      }
    })
  },
}

async function runSchedules(
  client: Client,
  url: string,
  enough: (done: number, sinceMs: number) => boolean,
  seed: number,
  progress: (text: string) => void,
): Promise<number> {
  const setup: InstanceSetup = { url, control: false, skewsMs }
  await using crew = await startMortalCrew(
    new URL('./schedule-instance.ts', import.meta.url),
    skewsMs.length,
    setup,
  )
  const beganMs = performance.now()
  for (let at = 0, shown = 0; ; at += 1) {
    const random = randomFor(seed, at)
    await pause(random.integer(killEveryMs.least, killEveryMs.most))
    const done = await runTicks(client, 'transactional')
    if (enough(done, performance.now() - beganMs)) break
    if (done - shown >= 100) {
      shown = done
      progress(`${done} ticks, ${crew.killed} processes killed`)
    }
    await crew.killOne(random.integer(0, skewsMs.length - 1))
  }
  // From here on nobody is killed: what is owed up to this moment has to be settled.
  const { rows } = await client.query<{ now: string }>('SELECT clock_timestamp()::text AS now')
  const now = rows[0]?.now
  await waitUntil(
    'everything is settled',
    async () => {
      const { rowCount } = await client.query(
        `SELECT FROM holdfast.schedules s WHERE s.last_tick < $1
         UNION ALL SELECT FROM holdfast.ticks t WHERE t.state IN ('running', 'waiting') AND t.at <= $1`,
        [now],
      )
      return rowCount === 0 ? true : undefined
    },
    { limitMs: 60_000, everyMs: 100 },
  )
  await client.query('CREATE TABLE until AS SELECT $1::timestamptz AS moment', [now])
  return crew.killed
}

async function runTicks(client: Client, name: string): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    'SELECT count(DISTINCT tick)::int AS count FROM effect WHERE name = $1',
    [name],
  )
  return rows[0]?.count ?? 0
}

interface Counts {
  readonly name: string
  readonly ticks: number
  readonly none: number
  readonly more: number
}

/** Every tick between the first that ran and the end, whether or not anything was left of it. */
async function judge(
  client: Client,
): Promise<{ violations: string[]; notes: string[]; operations: number }> {
  const { rows } = await client.query<Counts>(
    `SELECT n.name, count(*)::int AS ticks,
       count(*) FILTER (WHERE e.runs IS NULL)::int AS none,
       count(*) FILTER (WHERE e.runs > 1)::int AS more
     FROM unnest($1::text[]) AS n(name)
     CROSS JOIN LATERAL (SELECT min(tick) AS first FROM effect WHERE name = n.name) f
     CROSS JOIN until u
     CROSS JOIN LATERAL generate_series(f.first, u.moment, $2 * interval '1 millisecond') AS t(tick)
     LEFT JOIN LATERAL (
       SELECT nullif(count(*), 0) AS runs FROM effect e WHERE e.name = n.name AND e.tick = t.tick
     ) e ON true
     GROUP BY n.name`,
    [guarantees, everyMs],
  )
  const violations: string[] = []
  const notes: string[] = []
  for (const { name, ticks, none, more } of rows) {
    notes.push(`${name}: ${ticks} ticks, ${none} without effect, ${more} with more than one`)
    if (name !== 'at-most-once' && none > 0) violations.push(`${name}: ${none} ticks did not run`)
    if (name !== 'at-least-once' && more > 0) violations.push(`${name}: ${more} ticks ran twice`)
  }
  if (rows.length !== guarantees.length) violations.push('not every guarantee was tried')
  return { violations, notes, operations: rows.reduce((sum, { ticks }) => sum + ticks, 0) }
}

async function runControl(client: Client, url: string): Promise<number> {
  const setup: InstanceSetup = { url, control: true, skewsMs }
  await using _crew = await startMortalCrew(
    new URL('./schedule-instance.ts', import.meta.url),
    skewsMs.length,
    setup,
  )
  const untilMs = performance.now() + controlLimitMs
  for (;;) {
    await pause(500)
    const { rows } = await client.query(
      `SELECT tick FROM effect WHERE name = 'try_lock' GROUP BY tick HAVING count(*) > 1`,
    )
    if (rows.length > 0 || performance.now() > untilMs) return rows.length
  }
}
