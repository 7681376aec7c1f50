import { deferred, waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type HoldfastError, lockKey } from '../../../src/index.ts'
import { pgFixture } from '../../support/pg-fixture.ts'
import { type BreakableWire, breakableWire } from '../../support/breakable-wire.ts'

/**
 * A guard whose backend is killed at every one of its statements: before it is sent (with and
 * without the client having noticed), while it runs, and, for COMMIT, after it took effect and
 * before the client was told. Once as it is, where BEGIN and the lock go out together, and once
 * with a deadline, where they are two, and BEGIN comes with the server's limit.
 */
const fixture = pgFixture(`
  CREATE TABLE written (run text, part int, UNIQUE (run, part));
  CREATE FUNCTION wait_at_commit() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_advisory_xact_lock_shared(hashtext(NEW.run)); RETURN NULL; END';
  CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON written DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION wait_at_commit()`)

const steps = ['BEGIN', 'lock', 'insert 1', 'insert 2', 'COMMIT'] as const
type Step = (typeof steps)[number]
type Moment = 'before, noticed' | 'before, unnoticed' | 'during' | 'after, unacknowledged'

/** Called with the place of each statement in the guard before it is sent. */
type BeforeSending = (step: Step) => Promise<void>

function stepOf(text: string): Step | undefined {
  if (text.includes('pg_advisory_xact_lock')) return 'lock'
  if (text.startsWith('INSERT')) return text.includes('$1, 1') ? 'insert 1' : 'insert 2'
  return text === 'BEGIN' || text === 'COMMIT' ? text : undefined
}

/** A query object of ours writes to the connection itself; asked to, it shows what it would send. */
function textOf(query: string | { text: string } | { submit(to: object): void }): string {
  if (typeof query === 'string') return query
  if ('text' in query) return query.text
  let text = ''
  const stream = { write: (bytes: Buffer) => void (text = bytes.toString()) }
  query.submit({ stream })
  if (text.startsWith('Q')) return text.slice(5, -1)
  // With a deadline BEGIN goes out together with its limit.
  return text.includes('limit_transaction') || text.includes('AS limited')
    ? 'BEGIN'
    : 'pg_advisory_xact_lock'
}

/** The real client, stopping before each statement; the pool makes its clients from this class. */
function steppingClient(beforeSending: BeforeSending): typeof pg.Client {
  return class extends pg.Client {
    // oxlint-disable-next-line typescript/no-explicit-any -- pg's own overloads
    override query(...args: any[]): any {
      const [query] = args as [string | { text: string } | { submit(to: object): void }]
      const step = stepOf(textOf(query))
      const send = super.query.bind(this) as (...all: unknown[]) => Promise<unknown>
      return step === undefined ? send(...args) : beforeSending(step).then(() => send(...args))
    }
  } as typeof pg.Client
}

interface Outcome {
  error: HoldfastError | undefined
  rows: number
  /** COMMIT was handed to the network before the client knew that anything was wrong. */
  commitInFlight: boolean
}

let runNumber = 0

async function kill(at: Step, moment: Moment, options: { deadlineMs?: number }): Promise<Outcome> {
  runNumber += 1
  const run = `run-${runNumber}-${fixture.database.throughPooler ? 'pooled' : 'direct'}`
  await using wire = await breakableWire(fixture.database.url)
  const blocker = moment === 'during' ? await block(run, at) : undefined
  const noticed = deferred()
  let committing = false
  let attack: Promise<void> | undefined
  const pool = new pg.Pool({
    connectionString: wire.url,
    max: 1,
    application_name: run,
    Client: steppingClient(async (step) => {
      if (step === 'COMMIT') committing = true
      // A lock that is busy is asked for twice where the transaction has a limit.
      if (step !== at || attack !== undefined) return
      if (moment === 'before, noticed' || moment === 'before, unnoticed') {
        if (moment === 'before, unnoticed') wire.hold()
        const killed = await terminate(run)
        if (moment === 'before, noticed' && killed) await noticed.promise
        else setImmediate(() => wire.release())
      } else {
        if (moment === 'after, unacknowledged') wire.hold()
        attack = strike(run, moment, wire)
      }
    }),
  })
  pool.on('connect', (client) => void client.on('error', () => noticed.resolve()))
  pool.on('error', () => undefined)
  const hf = createHoldfast(fromPg(pool), { locks: { watch: false } })
  const error = await hf
    .guard(
      lockKey('kill', run),
      async (tx) => {
        await tx.query('INSERT INTO written VALUES ($1, 1)', [run])
        await tx.query('INSERT INTO written VALUES ($1, 2)', [run])
      },
      // Once: what each single failure is called is what this is about.
      { ...options, retry: false },
    )
    .then(
      () => undefined,
      (reason: unknown) => reason as HoldfastError,
    )
  await attack
  await blocker?.()
  await pool.end()
  const { rows } = await fixture.observer.query('SELECT FROM written WHERE run = $1', [run])
  const commitInFlight = committing && error !== undefined && moment !== 'before, noticed'
  return { error, rows: rows.length, commitInFlight }
}

const isOurs = "datname = current_database() AND application_name LIKE $1 || '%'"

/** Kills the backend and waits until it is gone; false if there was none (a pooler before BEGIN). */
async function terminate(run: string): Promise<boolean> {
  const { rows } = await fixture.observer.query(
    `SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${isOurs}`,
    [run],
  )
  await waitUntil('the backend is gone', async () => {
    const left = await fixture.observer.query(`SELECT FROM pg_stat_activity WHERE ${isOurs}`, [run])
    return left.rows.length === 0 || undefined
  })
  return rows.length > 0
}

/** Waits for the statement to be where it can be struck, then strikes. */
async function strike(run: string, moment: Moment, wire: BreakableWire): Promise<void> {
  if (moment === 'after, unacknowledged') {
    await waitUntil('the commit is visible', async () => {
      const { rows } = await fixture.observer.query('SELECT FROM written WHERE run = $1', [run])
      return rows.length > 0 || undefined
    })
    wire.cut()
    return
  }
  await waitUntil('the statement is blocked', async () => {
    const { rows } = await fixture.observer.query(
      `SELECT FROM pg_stat_activity WHERE ${isOurs} AND cardinality(pg_blocking_pids(pid)) > 0`,
      [run],
    )
    return rows.length > 0 || undefined
  })
  await terminate(run)
}

/** Makes one statement of the guard wait, so that it can be killed while it runs. */
async function block(run: string, at: Step): Promise<(() => Promise<void>) | undefined> {
  if (at === 'BEGIN') return undefined
  const client = await fixture.observer.connect()
  await client.query('BEGIN')
  if (at === 'lock') {
    await createHoldfast(fromPg(fixture.observer)).locks.acquire(client, lockKey('kill', run))
  } else if (at === 'COMMIT') {
    await client.query('SELECT pg_advisory_xact_lock(hashtext($1))', [run])
  } else {
    await client.query('INSERT INTO written VALUES ($1, $2)', [run, at === 'insert 1' ? 1 : 2])
  }
  return async () => {
    await client.query('ROLLBACK')
    client.release()
  }
}

describe.each([
  ['BEGIN and lock together', {}, steps.slice(1)],
  ['BEGIN, then lock', { deadlineMs: 60_000 }, steps],
] as const)('%s: the backend is killed', (_, options, ownSteps) => {
  const cases = ownSteps.flatMap((step) =>
    (['before, noticed', 'before, unnoticed', 'during', 'after, unacknowledged'] as const)
      .filter((moment) => step === 'COMMIT' || moment !== 'after, unacknowledged')
      // BEGIN cannot be made to wait.
      .filter((moment) => step !== 'BEGIN' || moment !== 'during')
      .map((moment) => [step, moment] as const),
  )

  test.each(cases)('at %s, %s', async (step, moment) => {
    for (let round = 0; round < 5; round += 1) {
      const { error, rows, commitInFlight } = await kill(step, moment, options)
      // Either before or after, never half.
      expect([0, 2]).toContain(rows)
      if (error === undefined) {
        // Only a pooler has nothing to kill before the first statement.
        expect([fixture.database.throughPooler, step]).toEqual([true, ownSteps[0]])
        expect(rows).toBe(2)
        continue
      }
      expect(error.code).toBe(commitInFlight ? 'COMMIT_UNKNOWN' : 'CONNECTION_LOST')
      expect(rows).toBe(moment === 'after, unacknowledged' ? 2 : 0)
      expect(error.name).toBe(commitInFlight ? 'UnknownOutcomeError' : 'DriverError')
      expect(error.retryable).toBe(!commitInFlight)
    }
  })
})

describe('control', () => {
  test('pg alone says the same thing whether the commit happened or not', async () => {
    const messages = await Promise.all(
      [true, false].map(async (committed) => {
        await using wire = await breakableWire(fixture.database.url)
        const client = new pg.Client({ connectionString: wire.url })
        client.on('error', () => undefined)
        await client.connect()
        await client.query('BEGIN')
        await client.query('INSERT INTO written VALUES ($1, 1)', [`control-${committed}`])
        wire.hold()
        if (!committed) wire.cut()
        const commit = client.query('COMMIT').then(String, (error: Error) => error.message)
        if (committed) {
          await waitUntil('committed', async () => {
            const { rows } = await fixture.observer.query(
              "SELECT FROM written WHERE run = 'control-true'",
            )
            return rows.length > 0 || undefined
          })
          wire.cut()
        }
        return await commit
      }),
    )
    expect(new Set(messages).size).toBe(1)
    const { rows } = await fixture.observer.query(
      "SELECT run FROM written WHERE run LIKE 'control%'",
    )
    expect(rows).toEqual([{ run: 'control-true' }])
  })
})
