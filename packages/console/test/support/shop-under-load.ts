/**
 * A database as an on-call person finds it: guards and consumes all the time, jobs, leases, schedules, and
 * a console that looks at it.
 */
import { createHoldfast, lockKey } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import { migrate } from 'holdfast/schema'
import pg from 'pg'
import { testDatabase } from '../../../holdfast/test/support/database.ts'
import { stagedNotes } from '../../../holdfast/test/support/staged-incident.ts'
import { OwnRevocations } from '../../src/auth/revocations.ts'
import { type ListeningConsole, listen } from '../../src/node/listen.ts'
import type { ConsoleOptions } from '../../src/server/console-options.ts'
import { assembleConsole } from '../../src/server/create-console.ts'
import { auth } from './started-console.ts'

export interface Shop {
  readonly url: string
  readonly origin: string
  readonly port: number
  /** Starts the console once more on the same port, after `closeConsole`. */
  openConsole(): Promise<void>
  closeConsole(): Promise<void>
  end(): Promise<void>
}

/** Sets up the shop and keeps it busy until it is ended. */
export async function openShop(options: Partial<ConsoleOptions> = {}): Promise<Shop> {
  const { directUrl: url } = await testDatabase()
  const pool = new pg.Pool({ connectionString: url, max: 6, application_name: 'shop-web' })
  const hf = createHoldfast(fromPg(pool))
  await migrate(fromPg(pool))
  await pool.query('SELECT holdfast.note_locks($1::jsonb, $2::jsonb)', [
    JSON.stringify(stagedNotes()),
    '[]',
  ])
  const recording = await hf.observe.record({ every: '1 s' })
  await stock(hf)
  const stopLoad = runLoad(hf)

  const looking = new pg.Pool({ connectionString: url, max: 3, application_name: 'console' })
  looking.on('error', () => undefined)
  let listening: ListeningConsole | undefined
  let port = 0
  const revocations = new OwnRevocations(Date.now)
  const openConsole = async (): Promise<void> => {
    const made = assembleConsole(
      {
        databases: {
          shop: {
            driver: fromPg(looking),
            claims: [{ table: 'outbox', columns: { attempts: 'attempts', runAt: 'run_at' } }],
            ownApplication: 'console',
          },
        },
        auth: { ...auth, secret: 'the same over a restart of the console', revocations },
        actions: [
          'cancel',
          'terminate',
          'schedule-pause',
          'schedule-resume',
          'schedule-run',
          'job-retry',
          'job-delete',
        ],
        audit: () => undefined,
        ...options,
      },
      {},
    )
    listening = await listen(made, { port, host: '127.0.0.1' })
    port = listening.port
  }
  const closeConsole = async (): Promise<void> => {
    await listening?.close()
    listening = undefined
  }
  await openConsole()
  return {
    url,
    origin: `http://127.0.0.1:${port}`,
    port,
    openConsole,
    closeConsole,
    async end() {
      await closeConsole()
      await stopLoad()
      await recording.stop()
      await looking.end()
      await pool.end()
    },
  }
}

type Hf = ReturnType<typeof createHoldfast<pg.PoolClient>>

async function stock(hf: Hf): Promise<void> {
  const credits = hf.credits({ name: 'credits' })
  await credits.grant('anna', 50_000, { operationId: 'bought-1' })
  await credits.grant('anna', 2_000, { operationId: 'welcome', priority: 10, expiresIn: '30 days' })
  await credits.grant('anna', 900, { operationId: 'launch', onlyFor: ['image'] })
  for (let at = 1; at <= 60; at += 1) {
    await credits.spend('anna', (at * 37) % 400, { operationId: `request-${at}` })
  }
  await credits.hold('anna', 300, { operationId: 'draft-1', ttl: '10 min' })
  await hf.quota({ name: 'api-calls', limit: 1_000_000, per: 'month' }).consume('bo', 12, {
    operationId: 'first',
  })
  const emails = hf.work<{ order: number }>({ queue: 'emails' })
  for (let order = 1; order <= 5; order += 1) await emails.enqueue({ payload: { order } })
  const exports = hf.work<{ customer: string; month: number }>({ queue: 'exports' })
  for (let month = 1; month <= 3; month += 1) {
    const payload = { customer: 'anna', month }
    await exports.enqueue({ payload, scope: 'anna', uniqueKey: `export-${month}`, maxAttempts: 1 })
  }
  await exports.fail(await exports.claim(3), { error: new Error('the bucket is full') })
  await hf.transaction(async (tx) => {
    await tx.query(`
      CREATE TABLE outbox (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        body text NOT NULL,
        status text NOT NULL DEFAULT 'pending',
        claim_token uuid,
        lease_until timestamptz,
        attempts int NOT NULL DEFAULT 0,
        run_at timestamptz NOT NULL DEFAULT now()
      );
      CREATE INDEX ON outbox (run_at, id) WHERE status = 'pending';
      CREATE INDEX ON outbox (lease_until) WHERE status = 'claimed';
      INSERT INTO outbox (body) SELECT 'message ' || n FROM generate_series(1, 12) n;
      INSERT INTO outbox (body, status, claim_token, lease_until)
      VALUES ('left behind', 'claimed', gen_random_uuid(), now() - interval '7 min')`)
  })
  await hf.leases.acquire('nightly-import', { ttl: '10 min', note: 'host-3' })
  for (const name of ['reports', 'sweep']) {
    const schedule = hf.schedule({
      name,
      cron: '0 3 * * *',
      timeZone: 'UTC',
      guarantee: 'transactional',
      handler: async () => {
        if (name === 'sweep') throw new Error('the mail server did not answer')
      },
    })
    for (let tick = 0; tick < 3; tick += 1) await schedule.runNow().catch(() => undefined)
  }
}

/** A few callers of each kind, each with a pause between calls so that two cores are left for others. */
function runLoad(hf: Hf): () => Promise<void> {
  const credits = hf.credits({ name: 'credits' })
  const pauseMs = 40
  let running = true
  const caller = async (work: (round: number) => Promise<unknown>): Promise<void> => {
    for (let round = 0; running; round += 1) {
      await work(round)
      await new Promise((resolve) => {
        setTimeout(resolve, pauseMs)
      })
    }
  }
  const callers = [
    ...[1, 2].map((which) =>
      caller((round) => hf.guard(lockKey('basket', (round + which) % 5), async () => undefined)),
    ),
    caller((round) => credits.spend('anna', 1, { operationId: `load-${round}` })),
  ]
  return async () => {
    running = false
    await Promise.all(callers)
  }
}
