import { type FileHandle, open, rm } from 'node:fs/promises'
import { Client } from 'pg'
import { ask } from '../cluster/ask.ts'
import { last, type OwnFault, type SingleFault, type Stage } from './own-fault.ts'

export const diskFull: SingleFault = {
  name: 'disk_full',
  async strike(stage) {
    const { ballast } = stage.cluster
    if (ballast === undefined) {
      stage.say('skipped: a disk of its own needs root, and the right to mount')
      return
    }
    try {
      await fillUp(ballast)
      await last(stage, 200, 1_200)
    } finally {
      await rm(ballast, { force: true })
    }
    await stage.cluster.mend()
  },
}

/** Writes until nothing fits any more, not even a page. */
async function fillUp(ballast: string): Promise<void> {
  const file = await open(ballast, 'w')
  try {
    for (const size of [1 << 20, 1 << 12]) await writeUntilFull(file, Buffer.alloc(size))
  } finally {
    await file.close()
  }
}

async function writeUntilFull(file: FileHandle, bytes: Buffer): Promise<void> {
  try {
    for (;;) await file.write(bytes)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  }
}

/** Whoever waits for a lock for longer gives up: 55P03. */
const lockTimeoutMs = 150

/** Somebody locks whole tables, one after the other, for longer than the others' lock_timeout. */
const lockStorm: OwnFault = {
  name: 'lock_storm',
  async prepare(adminUrl) {
    await ask(adminUrl, async (client) => {
      const { rows } = await client.query<{ name: string }>('SELECT current_database() AS name')
      const name = client.escapeIdentifier(rows[0]?.name ?? '')
      await client.query(`ALTER DATABASE ${name} SET lock_timeout = ${lockTimeoutMs}`)
    })
  },
  async strike({ cluster, database, random, say }) {
    const turns = random.integer(2, 5)
    await ask(cluster.adminUrl(database), async (client) => {
      const { rows } = await client.query<{ name: string }>(
        `SELECT c.oid::regclass::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
         WHERE relkind IN ('r', 'p') AND nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'
         ORDER BY 1`,
      )
      for (let turn = 0; turn < turns; turn += 1) {
        const table = rows[random.integer(0, rows.length - 1)]?.name ?? ''
        await client.query(`BEGIN; SET LOCAL lock_timeout = '500ms'`)
        try {
          await client.query(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`)
          await client.query('SELECT pg_sleep($1)', [random.integer(100, 400) / 1_000])
          say(table)
        } catch (error) {
          if ((error as { code?: string }).code !== '55P03') throw error
        }
        await client.query('ROLLBACK')
      }
    })
  },
}

/** All connections that the server allows are taken: 53300. */
const connectionsUsedUp: OwnFault = {
  name: 'connections_used_up',
  async strike(stage) {
    const url = stage.cluster.adminUrl('postgres')
    const taken: Client[] = []
    const takeOne = async (): Promise<boolean> => {
      const client = new Client({ connectionString: url, connectionTimeoutMillis: 2_000 })
      client.on('error', () => undefined)
      try {
        await client.connect()
        taken.push(client)
        return true
      } catch {
        return false
      }
    }
    try {
      while (await takeOne());
      stage.say(`${taken.length} taken`)
      await last(stage, 100, 800)
    } finally {
      await Promise.all(taken.map(async (client) => await client.end().catch(() => undefined)))
    }
  },
}

/** An application's wall clock jumps, up to a day; the machine's stays as it is. */
const clockJump: OwnFault = {
  name: 'clock_jump',
  async strike(stage: Stage) {
    const { crew, random, say } = stage
    const sizes = [700, 5_000, 90_000, 4_000_000, 86_400_000]
    const size = sizes[random.integer(0, sizes.length - 1)] ?? 0
    const byMs = random.integer(0, 1) === 0 ? size : -size
    await crew.jumpClock(random.integer(0, crew.pids.length - 1), byMs)
    say(`by ${byMs} ms`)
  },
}

export const resourceFaults: readonly OwnFault[] = [lockStorm, connectionsUsedUp, clockJump]
