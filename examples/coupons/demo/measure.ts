import { readFile } from 'node:fs/promises'
import { fromPg } from 'holdfast/drivers/pg'
import { migrate } from 'holdfast/schema'
import pg from 'pg'
import { perUser, type Redeem } from '../src/coupon.ts'
import { withClient, withDatabase } from './databases.ts'
import { startWorker } from './start-worker.ts'
import type { Answered, Way } from './worker.ts'

/** What the database says afterwards. */
export interface Measured {
  readonly codes: number
  readonly codesOverLimit: number
  readonly usersOverLimit: number
  readonly requestsCountedTwice: number
  readonly redemptions: number
  readonly failed: number
}

/** Every code may be redeemed so often. */
export const max = 3
/** Requests for one code at the same moment; each is sent to both processes. */
export const requests = 8

/** Runs two processes on an empty database. Each round has two codes of its own: one for many users, one for one user. */
export async function measure(way: Way, rounds: number, onRound: () => void): Promise<Measured> {
  return await withDatabase(async (url) => {
    await prepare(url, way, rounds)
    const workers = await Promise.all([startWorker(url, way), startWorker(url, way)])
    const answers: Answered['answer'][] = []
    try {
      for (let round = 0; round < rounds; round += 1) {
        const sent = requestsOf(round).flatMap((request) =>
          workers.map((worker) => worker.redeem(request)),
        )
        answers.push(...(await Promise.all(sent)))
        onRound()
      }
    } finally {
      await Promise.all(workers.map((worker) => worker.stop()))
    }
    const failed = answers.filter((answer) => answer === 'failed').length
    return { codes: 2 * rounds, ...(await lookedUp(url)), failed }
  })
}

async function prepare(url: string, way: Way, rounds: number): Promise<void> {
  const files = way === 'byStatements' ? ['schema.sql', 'counters.sql'] : ['schema.sql']
  await withClient(url, async (client) => {
    for (const file of files) {
      await client.query(await readFile(new URL(`../${file}`, import.meta.url), 'utf8'))
    }
    await client.query(
      `INSERT INTO coupon SELECT kind || n, $2::int
       FROM generate_series(0, $1::int - 1) AS n, unnest('{ALL-,ONE-}'::text[]) AS kind`,
      [rounds, max],
    )
  })
  if (way !== 'ledger') return
  const pool = new pg.Pool({ connectionString: url })
  await migrate(fromPg(pool))
  await pool.end()
}

function requestsOf(round: number): Redeem[] {
  return Array.from({ length: requests }, (_, n): Redeem[] => [
    { requestId: `all-${round}-${n}`, code: `ALL-${round}`, userId: `user-${n}` },
    { requestId: `one-${round}-${n}`, code: `ONE-${round}`, userId: 'ann' },
  ]).flat()
}

async function lookedUp(url: string): Promise<Omit<Measured, 'codes' | 'failed'>> {
  return await withClient(url, async (client) => {
    const { rows } = await client.query<Omit<Measured, 'codes' | 'failed'>>(
      `SELECT
         (SELECT count(*) FROM (SELECT FROM redemption GROUP BY code
            HAVING count(*) > $1::int) AS over_limit)::int AS "codesOverLimit",
         (SELECT count(*) FROM (SELECT FROM redemption GROUP BY code, user_id
            HAVING count(*) > $2::int) AS over_limit)::int AS "usersOverLimit",
         (SELECT count(*) FROM (SELECT FROM redemption GROUP BY request_id
            HAVING count(*) > 1) AS twice)::int AS "requestsCountedTwice",
         (SELECT count(*) FROM redemption)::int AS redemptions`,
      [max, perUser],
    )
    return rows[0] as Omit<Measured, 'codes' | 'failed'>
  })
}
