import { readFile } from 'node:fs/promises'
import { type NewBooking, perWeek } from '../src/booking.ts'
import { withClient, withDatabase } from './databases.ts'
import { startWorker } from './start-worker.ts'
import type { Answered, Way } from './worker.ts'

/** What the database says afterwards. */
export interface Measured {
  readonly desks: number
  readonly guests: number
  readonly desksBookedTwice: number
  readonly guestsOverLimit: number
  readonly booked: number
  readonly failed: number
}

/** Per round: so many desks that everybody wants, and so many guests who want many desks. */
export const each = 4
/** At the same moment, half of them in each process. */
export const requests = 8
const hourMs = 60 * 60_000
const firstMonday = Date.parse('2030-05-06T09:00:00Z')

/** Runs two processes on an empty database. Each round has a week of its own. */
export async function measure(way: Way, rounds: number, onRound: () => void): Promise<Measured> {
  return await withDatabase(async (url) => {
    await run(url, 'schema.sql')
    if (way === 'byConstraint') await run(url, 'no-overlap.sql')
    const workers = await Promise.all([startWorker(url, way), startWorker(url, way)])
    const answers: Answered['answer'][] = []
    try {
      for (let round = 0; round < rounds; round += 1) {
        const at = firstMonday + round * 7 * 24 * hourMs
        await bookOnceEach(url, at)
        answers.push(
          ...(await Promise.all(
            bookingsOf(at).map((booking, n) => workers[n % 2 === 0 ? 0 : 1].book(booking)),
          )),
        )
        onRound()
      }
    } finally {
      await Promise.all(workers.map((worker) => worker.stop()))
    }
    const count = (what: Answered['answer']): number => answers.filter((one) => one === what).length
    const totals = { desks: rounds * each, guests: rounds * each }
    return { ...totals, ...(await lookedUp(url)), booked: count('booked'), failed: count('failed') }
  })
}

async function run(url: string, file: string): Promise<void> {
  const sql = await readFile(new URL(`../prisma/${file}`, import.meta.url), 'utf8')
  await withClient(url, (client) => client.query(sql))
}

/** The guests have one booking in this week already: one more is allowed. */
async function bookOnceEach(url: string, at: number): Promise<void> {
  await withClient(url, async (client) => {
    await client.query(
      `INSERT INTO booking (desk, guest, starts_at, ends_at)
       SELECT 'first-' || g, 'guest-' || g, $1::timestamptz, $1::timestamptz + interval '1 hour'
       FROM generate_series(0, $2::int - 1) AS g`,
      [new Date(at + 24 * hourMs), each],
    )
  })
}

/** All of them are sent at once. Those for one desk overlap; those of one guest are for different desks. */
function bookingsOf(at: number): NewBooking[] {
  return Array.from({ length: requests }, (_, n) => n).flatMap((n) =>
    Array.from({ length: each }, (__, k): NewBooking[] => {
      const from = new Date(at + n * 5 * 60_000)
      const until = new Date(from.getTime() + hourMs)
      return [
        { desk: `wanted-${k}`, guest: `somebody-${k}-${n}`, from, until },
        { desk: `free-${k}-${n}`, guest: `guest-${k}`, from, until },
      ]
    }).flat(),
  )
}

async function lookedUp(
  url: string,
): Promise<Pick<Measured, 'desksBookedTwice' | 'guestsOverLimit'>> {
  return await withClient(url, async (client) => {
    const { rows } = await client.query<{ desks: number; guests: number }>(
      `SELECT
         (SELECT count(DISTINCT (a.desk, date_trunc('week', a.starts_at, 'UTC')))
          FROM booking a JOIN booking b ON a.desk = b.desk AND a.id < b.id
            AND tstzrange(a.starts_at, a.ends_at) && tstzrange(b.starts_at, b.ends_at))::int AS desks,
         (SELECT count(*) FROM (
            SELECT FROM booking GROUP BY guest, date_trunc('week', starts_at, 'UTC')
            HAVING count(*) > $1::int) AS over_limit)::int AS guests`,
      [perWeek],
    )
    return { desksBookedTwice: Number(rows[0]?.desks), guestsOverLimit: Number(rows[0]?.guests) }
  })
}
