import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createHoldfast } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import { migrate } from 'holdfast/schema'
import pg from 'pg'
import { estimatedCredits, monthlyCalls, welcomeCredits } from '../src/plan.ts'
import { withClient } from './databases.ts'
import { type Service, startService } from './start-service.ts'
import { waitUntil } from './wait-until.ts'

export type Way = 'naive' | 'holdfast'

/** How hard to try. Every round has users and processes of its own. */
export interface Plan {
  readonly rounds: number
  /** Users of a round, all at once. */
  readonly users: number
  /** Requests of one user, all at once; each is sent twice, to different processes. */
  readonly requests: number
}

/** What came of one way. */
export interface Measured {
  readonly users: number
  /** Requests that got at least one answer 200. */
  readonly served: number
  readonly usersOver: number
  readonly callsOver: number
  readonly chargedTwice: number
  /** Of the process that was killed. */
  readonly creditsStuck: number
  readonly usersLockedOut: number
}

const processes = 3
const schema = new URL('../schema.sql', import.meta.url)

/** Runs the service as short-lived processes on an empty database, and looks at what is left. */
export async function measure(
  databaseUrl: string,
  way: Way,
  plan: Plan,
  onRound: () => void,
): Promise<Measured> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 4 })
  try {
    await pool.query(await readFile(schema, 'utf8'))
    await migrate(fromPg(pool))
    let served = 0
    const lockedOut: boolean[] = []
    for (let round = 0; round < plan.rounds; round += 1) {
      const users = Array.from({ length: plan.users }, () => randomUUID())
      served += await useCalls(databaseUrl, way, users, plan.requests)
      lockedOut.push(...(await killedWhileThinking(databaseUrl, pool, way, users)))
      onRound()
    }
    return {
      users: plan.rounds * plan.users,
      served,
      usersLockedOut: lockedOut.filter(Boolean).length,
      ...(await lookedUp(databaseUrl, way)),
    }
  } finally {
    await pool.end()
  }
}

/** All calls of all users leave at the same moment. Gives how many requests were served. */
async function useCalls(
  databaseUrl: string,
  way: Way,
  users: readonly string[],
  requests: number,
): Promise<number> {
  const services = await Promise.all(
    Array.from({ length: processes }, () => startService(databaseUrl, { WAY: way })),
  )
  try {
    // Opens connections, so that the calls do not trickle in one by one.
    await Promise.all(
      services.flatMap((service) =>
        Array.from({ length: 10 }, () => call(service, randomUUID(), randomUUID())),
      ),
    )
    const served = await Promise.all(
      users.flatMap((user) =>
        Array.from({ length: requests }, async (_, n) => {
          const id = randomUUID()
          // The client did not wait for the first answer.
          const answers = await Promise.all(
            [n, n + 1].map((at) => call(services[at % processes] as Service, user, id)),
          )
          return answers.includes(200)
        }),
      ),
    )
    return served.filter(Boolean).length
  } finally {
    await Promise.all(services.map((service) => service.stop()))
  }
}

async function call(service: Service, user: string, id: string): Promise<number> {
  return post(`${service.url}/users/${user}/calls`, id, {})
}

async function complete(service: Service, user: string): Promise<number> {
  return post(`${service.url}/users/${user}/completions`, randomUUID(), { prompt: 'A poem' })
}

async function post(url: string, id: string, body: object): Promise<number> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'idempotency-key': id, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  await response.arrayBuffer()
  return response.status
}

const holdSeconds = 3

/**
 * A process is killed while its model thinks. Once the holds have run out, a new one serves the same
 * users. Gives which of them it had to turn away.
 */
async function killedWhileThinking(
  databaseUrl: string,
  pool: pg.Pool,
  way: Way,
  users: readonly string[],
): Promise<boolean[]> {
  await giveCredits(pool, users)
  const settings = { WAY: way, HOLD_TTL: `${holdSeconds} s` }
  const doomed = await startService(databaseUrl, { ...settings, MODEL_MS: '600000' })
  // Nobody will answer these: their process is killed under them.
  const lost = users.flatMap((user) => [1, 2].map(() => complete(doomed, user).catch(() => 0)))
  const reserved = users.length * 2 * estimatedCredits
  await waitUntil(
    'everything is reserved',
    async () => (await reservedCredits(pool, way, users)) === reserved,
  )
  await doomed.kill()
  await Promise.all(lost)
  await waitUntil('the holds have run out', async () => {
    const { rows } = await pool.query('SELECT FROM holdfast.open_holds WHERE NOT overdue LIMIT 1')
    return rows.length === 0
  })
  const service = await startService(databaseUrl, { ...settings, MODEL_MS: '10' })
  try {
    return await Promise.all(users.map(async (user) => (await complete(service, user)) !== 200))
  } finally {
    await service.stop()
  }
}

async function giveCredits(pool: pg.Pool, users: readonly string[]): Promise<void> {
  await pool.query('INSERT INTO wallet (user_id, balance) SELECT unnest($1::text[]), $2', [
    users,
    welcomeCredits,
  ])
  const credits = createHoldfast(fromPg(pool)).credits({ name: 'ai-credits' })
  await Promise.all(
    users.map((user) => credits.grant(user, welcomeCredits, { operationId: 'welcome' })),
  )
}

/** What is put aside for these users. */
async function reservedCredits(pool: pg.Pool, way: Way, users: readonly string[]): Promise<number> {
  const { rows } = await pool.query<{ reserved: string }>(
    way === 'naive'
      ? 'SELECT sum(reserved) AS reserved FROM wallet WHERE user_id = ANY ($1)'
      : 'SELECT sum(held) AS reserved FROM holdfast.balances WHERE key = ANY ($1)',
    [users],
  )
  return Number(rows[0]?.reserved)
}

/** Counted by the database, not by what the clients were told. */
async function lookedUp(
  databaseUrl: string,
  way: Way,
): Promise<Pick<Measured, 'usersOver' | 'callsOver' | 'chargedTwice' | 'creditsStuck'>> {
  return withClient(databaseUrl, async (client) => {
    const charges =
      way === 'naive'
        ? 'SELECT user_id AS who, request_id AS id, 1 AS calls FROM api_call'
        : `SELECT key AS who, operation_id AS id, debit AS calls FROM holdfast.movements
           WHERE book = 'api-calls'`
    const { rows: over } = await client.query<{ users: string; calls: string }>(
      `SELECT count(*) AS users, coalesce(sum(used - $1::int), 0) AS calls
       FROM (SELECT sum(calls) AS used FROM (${charges}) AS charge GROUP BY who) AS usage
       WHERE used > $1::int`,
      [monthlyCalls],
    )
    const { rows: twice } = await client.query(
      `SELECT FROM (${charges}) AS charge GROUP BY who, id HAVING sum(calls) > 1`,
    )
    const { rows: stuck } = await client.query<{ credits: string }>(
      way === 'naive'
        ? 'SELECT sum(reserved) AS credits FROM wallet'
        : "SELECT sum(held) AS credits FROM holdfast.balances WHERE book = 'ai-credits'",
    )
    return {
      usersOver: Number(over[0]?.users),
      callsOver: Number(over[0]?.calls),
      chargedTwice: twice.length,
      creditsStuck: Number(stuck[0]?.credits),
    }
  })
}
