import { readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { fromPg } from 'holdfast/drivers/pg'
import { migrate } from 'holdfast/schema'
import pg from 'pg'
import { isMonthEnd } from '../src/bank.ts'
import { withClient } from './databases.ts'
import { startWorker, type Worker } from './start-worker.ts'
import { waitUntil } from './wait-until.ts'

export type Way = 'naive' | 'holdfast'

export interface Plan {
  readonly nights: number
  readonly nightMs: number
}

/** What the database says afterwards. */
export interface Measured {
  readonly nights: number
  /** Every merchant was charged once. */
  readonly nightsRight: number
  readonly nightsLost: number
  readonly merchantsChargedTwice: number
  readonly centsTooMuch: number
  readonly killed: number
}

/** Their timers are late by so much: less than a long job takes, more than a short one. */
const latesMs = [0, 200, 400]
/** A month's end is under way when its process is killed, and the others have looked already. */
const killAfterMs = 800
const schema = new URL('../schema.sql', import.meta.url)

/** Runs three processes through the nights on an empty database, kills some, and looks at what is left. */
export async function measure(
  databaseUrl: string,
  way: Way,
  plan: Plan,
  onNight: () => void,
): Promise<Measured> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 })
  await pool.query(await readFile(schema, 'utf8'))
  await migrate(fromPg(pool))
  await pool.end()
  const { nightMs } = plan
  const struck = new Map<string, Promise<void>>()
  const workers: Worker[] = []
  const start = async (at: number): Promise<void> => {
    workers[at] = await startWorker(
      {
        DATABASE_URL: databaseUrl,
        WAY: way,
        NIGHT_MS: String(nightMs),
        LATE_MS: String(latesMs[at]),
      },
      (night) => {
        if (!struck.has(night) && isMonthEnd(new Date(night), nightMs)) {
          struck.set(night, strike(at))
        }
      },
    )
  }
  /** Kills the process that is at work, and starts another in its place. */
  let over = false
  const strike = async (at: number): Promise<void> => {
    await pause(killAfterMs)
    // The last night may be done while this paused, and then the server is about to be stopped.
    if (over) return
    await workers[at]?.kill()
    await start(at)
  }
  await Promise.all(latesMs.map((_, at) => start(at)))
  // Counted are whole nights, from the next one on.
  const first = (Math.floor(Date.now() / nightMs) + 1) * nightMs
  try {
    for (let night = 1; night <= plan.nights; night += 1) {
      await pause(first + night * nightMs - Date.now())
      onNight()
    }
    await Promise.all(struck.values())
    // A slow machine gets the time it needs; a night that nobody owes any more is not waited for.
    if (way === 'holdfast') await untilDone(databaseUrl, first + (plan.nights - 1) * nightMs)
  } finally {
    over = true
    await Promise.all(struck.values())
    await Promise.all(workers.map((worker) => worker.stop()))
  }
  const last = first + (plan.nights - 1) * nightMs
  const killed = [...struck.keys()].filter((night) => inside(Date.parse(night), first, last)).length
  return { ...(await lookedUp(databaseUrl, first, last, nightMs)), killed }
}

async function untilDone(databaseUrl: string, night: number): Promise<void> {
  await withClient(databaseUrl, async (client) => {
    await waitUntil('the last night is done', async () => {
      const { rows } = await client.query(
        'SELECT FROM holdfast.schedules WHERE last_tick >= to_timestamp($1::float8 / 1000)',
        [night],
      )
      return rows.length > 0
    })
  })
}

function inside(moment: number, first: number, last: number): boolean {
  return moment >= first && moment <= last
}

/** Counted by the database, night by night and merchant by merchant. */
async function lookedUp(
  databaseUrl: string,
  first: number,
  last: number,
  nightMs: number,
): Promise<Omit<Measured, 'killed'>> {
  return await withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<
      Record<'nights' | 'right' | 'lost' | 'twice' | 'cents', number>
    >(
      `WITH charged AS (
         SELECT n.night, m.id, m.fee_cents, count(s.merchant)::int AS times
         FROM generate_series(to_timestamp($1::float8 / 1000), to_timestamp($2::float8 / 1000),
           $3 * interval '1 millisecond') AS n(night)
         CROSS JOIN merchant m
         LEFT JOIN settlement s ON s.night = n.night AND s.merchant = m.id
         GROUP BY 1, 2, 3
       ), nights AS (
         SELECT night, min(times) AS least, max(times) AS most FROM charged GROUP BY night
       )
       SELECT count(*)::int AS nights,
         count(*) FILTER (WHERE least = 1 AND most = 1)::int AS right,
         count(*) FILTER (WHERE least = 0)::int AS lost,
         (SELECT count(DISTINCT id)::int FROM charged WHERE times > 1) AS twice,
         (SELECT coalesce(sum((times - 1) * fee_cents), 0)::int FROM charged WHERE times > 1) AS cents
       FROM nights`,
      [first, last, nightMs],
    )
    const [{ nights, right, lost, twice, cents }] = rows as [(typeof rows)[number]]
    return {
      nights,
      nightsRight: right,
      nightsLost: lost,
      merchantsChargedTwice: twice,
      centsTooMuch: cents,
    }
  })
}
