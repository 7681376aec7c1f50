import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { capBytes } from '../src/quota.ts'
import { withClient } from './databases.ts'
import { type Service, startService } from './start-service.ts'

/** How hard to try. Every round has users of its own. */
export interface Plan {
  readonly rounds: number
  /** Users of a round, all at once. */
  readonly users: number
  /** Uploads of one user, all at once, half of them to each process. */
  readonly uploads: number
}

/** What came of one run. */
export interface Measured {
  readonly users: number
  readonly answers: ReadonlyMap<number, number>
  readonly usersOver: number
  readonly bytesOver: number
}

const imageBytes = 1_000_000
const schema = new URL('../prisma/schema.sql', import.meta.url)

/**
 * Runs the service as two processes on an empty database. Each user has room for exactly one more
 * image; then all of a user's uploads are sent at once, to both processes.
 */
export async function measure(
  databaseUrl: string,
  guard: 'on' | 'off',
  plan: Plan,
  onRound: () => void,
): Promise<Measured> {
  const sql = await readFile(schema, 'utf8')
  await withClient(databaseUrl, async (client) => await client.query(sql))
  const answers = new Map<number, number>()
  const services: Service[] = []
  try {
    for (let n = 0; n < 2; n += 1) {
      services.push(await startService(databaseUrl, { GUARD: guard }))
    }
    await warmUp(services, plan)
    for (let round = 0; round < plan.rounds; round += 1) {
      const users = await usersWithRoomForOne(databaseUrl, plan.users)
      for (const status of await uploadTogether(services, users, plan.uploads)) {
        answers.set(status, (answers.get(status) ?? 0) + 1)
      }
      onRound()
    }
  } finally {
    await Promise.all(services.map((service) => service.stop()))
  }
  return { users: plan.rounds * plan.users, answers, ...(await overLimit(databaseUrl)) }
}

/** Opens the connections, so that the first round does not trickle in one by one. */
async function warmUp(services: readonly Service[], { users, uploads }: Plan): Promise<void> {
  const ids = Array.from({ length: users * uploads }, () => randomUUID())
  await uploadTogether(services, ids, 1)
}

async function usersWithRoomForOne(databaseUrl: string, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => randomUUID())
  await withClient(databaseUrl, async (client) => {
    await client.query(
      `INSERT INTO user_image (id, user_id, byte_size)
       SELECT gen_random_uuid(), id, $2::int FROM unnest($1::text[]) AS id`,
      [ids, capBytes - imageBytes],
    )
  })
  return ids
}

/** All uploads of all users leave at the same moment. Gives the status of each. */
async function uploadTogether(
  services: readonly Service[],
  users: readonly string[],
  uploadsEach: number,
): Promise<number[]> {
  const sending = users.flatMap((user, at) =>
    Array.from({ length: uploadsEach }, async (_, n) => {
      const service = services[(at + n) % services.length] as Service
      const response = await fetch(`${service.url}/users/${user}/images`, {
        method: 'POST',
        body: JSON.stringify({ byteSize: imageBytes }),
      })
      await response.arrayBuffer()
      return response.status
    }),
  )
  return Promise.all(sending)
}

/** Counted by the database, not by what the clients were told. */
async function overLimit(databaseUrl: string): Promise<Pick<Measured, 'usersOver' | 'bytesOver'>> {
  return withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<{ users: string; bytes: string }>(
      `SELECT count(*) AS users, coalesce(sum(used - $1::int), 0) AS bytes
       FROM (SELECT sum(byte_size) AS used FROM user_image GROUP BY user_id) AS usage
       WHERE used > $1::int`,
      [capBytes],
    )
    const [over] = rows
    return { usersOver: Number(over?.users), bytesOver: Number(over?.bytes) }
  })
}
