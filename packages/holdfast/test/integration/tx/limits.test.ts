import { deferred, waitUntil, waitUntilBlocked } from '@holdfast/testkit'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { holdfastError } from '../../../src/core/errors.ts'
import type { TxEvent } from '../../../src/core/events/event-map.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../../src/index.ts'
import type { RetryInfo } from '../../../src/tx/index.ts'
import { eventsOn, pgFixture, pidOf } from '../../support/pg-fixture.ts'
import { inTime } from '../../support/in-time.ts'

/** What a signal and a deadline do at each moment of a transaction, and what is said of it. */
const fixture = pgFixture(`
  CREATE TABLE notes (text text);
  CREATE TABLE refused_at_commit (note text);
  CREATE FUNCTION refuse_at_commit() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_advisory_xact_lock(992); RAISE EXCEPTION 'refused at commit'; END $$;
  CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON refused_at_commit DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION refuse_at_commit()`)

const reason = new Error('the user closed the tab')
const subject = 'nothing is saved'

async function notes(text: string): Promise<number> {
  const { rows } = await fixture.observer.query('SELECT FROM notes WHERE text = $1', [text])
  return rows.length
}

const write = async (tx: pg.PoolClient, text: string): Promise<unknown> =>
  await tx.query('INSERT INTO notes VALUES ($1)', [text])

function poolOfOne(): { readonly pool: pg.Pool; readonly hf: Holdfast<pg.PoolClient> } {
  const pool = new pg.Pool({ connectionString: fixture.database.url, max: 1 })
  onTestFinished(async () => await pool.end())
  return { pool, hf: createHoldfast(fromPg(pool)) }
}

describe('an abort', () => {
  test('before the call takes no connection', async () => {
    const { pool, hf } = poolOfOne()
    let ran = false
    const run = hf.tx.run(
      async () => {
        ran = true
      },
      { signal: AbortSignal.abort(reason) },
    )
    await expect(run).rejects.toBe(reason)
    expect([ran, pool.totalCount]).toEqual([false, 0])
  })

  test('while all connections are in use is heard at once, and nothing runs later', async () => {
    const { pool, hf } = poolOfOne()
    const only = await pool.connect()
    const stop = new AbortController()
    let ran = false
    const run = hf.tx.run(
      async () => {
        ran = true
      },
      { signal: stop.signal, deadline: '1 min' },
    )
    const settled = run.catch((error: unknown) => error)
    await waitUntil('it queues', () => pool.waitingCount > 0 || undefined)
    const aborted = performance.now()
    stop.abort(reason)
    expect(await settled).toBe(reason)
    inTime(performance.now() - aborted, 500)
    only.release()
    expect(await hf.tx.run(async () => 'next')).toBe('next')
    expect(ran).toBe(false)
  })

  test('that the body does not heed undoes its work', async () => {
    const stop = new AbortController()
    const run = fixture.hf.tx.run(
      async (tx) => {
        await write(tx, 'unheeded')
        stop.abort(reason)
        return 'done'
      },
      { signal: stop.signal },
    )
    await expect(run).rejects.toBe(reason)
    expect(await notes('unheeded')).toBe(0)
  })

  test('gives the connection back only when its cancel has arrived', async () => {
    const { hf } = poolOfOne()
    const stop = new AbortController()
    const run = hf.tx.run(
      async (tx) => {
        stop.abort(reason)
        await tx.query('SELECT 1')
      },
      { signal: stop.signal },
    )
    await expect(run).rejects.toBe(reason)
    // A cancel that comes late would hit this one.
    expect(await hf.tx.run(async (tx) => (await tx.query('SELECT pg_sleep(0.2)')).rowCount)).toBe(1)
  })

  test('is the reason also of a body that was refused to end the transaction', async () => {
    const stop = new AbortController()
    const run = fixture.hf.tx.run(
      async () => {
        stop.abort(reason)
        throw holdfastError('TX_ENDED_INSIDE', { details: { subject, ended: 'refused' } })
      },
      { signal: stop.signal },
    )
    await expect(run).rejects.toBe(reason)
  })

  test.each([
    ['that part of its work is committed', 'TX_ENDED_INSIDE', { subject, ended: 'committed' }],
    ['that an outcome is unknown', 'COMMIT_UNKNOWN', {}],
  ] as const)('does not hide %s', async (_, code, details) => {
    const stop = new AbortController()
    const run = fixture.hf.tx.run(
      async () => {
        stop.abort(reason)
        throw holdfastError(code, { details })
      },
      { signal: stop.signal },
    )
    await expect(run).rejects.toMatchObject({ code })
  })

  test('hides any other error of the body, which is its consequence', async () => {
    for (const error of [new Error('of the body'), holdfastError('LOCK_BUSY')]) {
      const stop = new AbortController()
      const run = fixture.hf.tx.run(
        async () => {
          stop.abort(reason)
          throw error
        },
        { signal: stop.signal },
      )
      await expect(run).rejects.toBe(reason)
    }
  })

  test('during COMMIT does not hide why the server refused it', async () => {
    const stop = new AbortController()
    const gate = await fixture.observer.connect()
    await gate.query('SELECT pg_advisory_lock(992)')
    const inside = deferred<number>()
    const run = fixture.hf.tx.run(
      async (tx) => {
        inside.resolve(await pidOf(tx))
        await tx.query("INSERT INTO refused_at_commit VALUES ('x')")
      },
      { signal: stop.signal },
    )
    const settled = run.catch((error: unknown) => error)
    await waitUntilBlocked(fixture.observer, await inside.promise)
    stop.abort(reason)
    await gate.query('SELECT pg_advisory_unlock(992)')
    gate.release()
    expect(await settled).toMatchObject({ message: 'refused at commit' })
  })

  test('leaves nobody listening to the signal', async () => {
    const { signal } = new AbortController()
    let listening = 0
    const [add, remove] = [
      signal.addEventListener.bind(signal),
      signal.removeEventListener.bind(signal),
    ]
    Object.assign(signal, {
      addEventListener: (...args: Parameters<typeof add>) => {
        listening += 1
        add(...args)
      },
      removeEventListener: (...args: Parameters<typeof remove>) => {
        listening -= 1
        remove(...args)
      },
    })
    await fixture.hf.tx.run(async () => expect(listening).toBe(1), { signal })
    expect(listening).toBe(0)
  })
})

describe('a deadline', () => {
  const timers = (): number =>
    process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length

  test('tells the body how long it has, and leaves no timer behind', async () => {
    const before = timers()
    const left = await fixture.hf.tx.run(async (_tx, attempt) => attempt.remainingMs() ?? 0, {
      deadline: '1 min',
    })
    expect(left).toBeGreaterThan(1_000)
    expect(left).toBeLessThanOrEqual(60_000)
    // Others come and go; one that is left behind each time shows.
    for (let n = 0; n < 20; n += 1) await fixture.hf.tx.run(async () => 1, { deadline: '1 min' })
    expect(timers()).toBeLessThan(before + 20)
  })

  test('and a signal are both heard', async () => {
    const stop = new AbortController()
    const waits = (tx: pg.PoolClient): Promise<unknown> => tx.query('SELECT pg_sleep(20)')
    const aborted = fixture.hf.tx.run(
      async (tx) => {
        stop.abort(reason)
        await waits(tx)
      },
      { signal: stop.signal, deadline: '10 s' },
    )
    await expect(aborted).rejects.toBe(reason)
    const late = fixture.hf.tx.run(waits, { signal: new AbortController().signal, deadline: 100 })
    await expect(late).rejects.toMatchObject({ code: 'TX_DEADLINE' })
  })

  test('keeps what else was asked for', async () => {
    const level = await fixture.hf.tx.run(
      async (tx) => (await tx.query('SHOW transaction_isolation')).rows,
      { deadline: '10 s', isolation: 'serializable' },
    )
    expect(level).toEqual([{ transaction_isolation: 'serializable' }])
  })

  test('or an isolation that cannot be is refused by its name', async () => {
    const run = fixture.hf.tx.run(async () => 1, { isolation: 'bogus' as 'serializable' })
    await expect(run).rejects.toMatchObject({
      code: 'OPTION_INVALID',
      details: { option: 'isolation' },
    })
  })

  test('that cannot be is refused by its name', async () => {
    const refused = async (options: object, option: string): Promise<void> =>
      await expect(fixture.hf.tx.run(async () => 1, options)).rejects.toMatchObject({
        code: 'OPTION_INVALID',
        message: expect.stringContaining(option),
        details: { option },
      })
    await refused({ deadline: 0 }, 'deadline')
    await refused({ deadlineMs: -1 }, 'deadlineMs')
  })
})

describe('a server that is not there', () => {
  const away = (): Holdfast<pg.PoolClient> => {
    const pool = new pg.Pool({ host: '127.0.0.1', port: 1 })
    onTestFinished(async () => await pool.end())
    return createHoldfast(fromPg(pool))
  }

  test('is waited for as long as the budget of the retries', async () => {
    const retried: RetryInfo[] = []
    const run = away().tx.run(async () => 'never', {
      retry: { budgetMs: 200, baseMs: 10, capMs: 20 },
      onRetry: (info) => retried.push(info),
    })
    await expect(run).rejects.toMatchObject({ code: 'CONNECTION_UNAVAILABLE' })
    expect(retried.length).toBeGreaterThan(4)
    expect(retried[0]?.reason).toBe('CONNECTION_UNAVAILABLE')
  })

  test('is not waited for without retries', async () => {
    const retried: RetryInfo[] = []
    const run = away().tx.run(async () => 'never', {
      retry: false,
      onRetry: (info) => retried.push(info),
    })
    await expect(run).rejects.toMatchObject({ code: 'CONNECTION_UNAVAILABLE' })
    expect(retried).toEqual([])
  })

  test('an error of a body that only looks like it is the body’s', async () => {
    let runs = 0
    const run = fixture.hf.tx.run(async () => {
      runs += 1
      throw holdfastError('CONNECTION_UNAVAILABLE')
    })
    await expect(run).rejects.toMatchObject({ code: 'CONNECTION_UNAVAILABLE' })
    expect(runs).toBe(1)
  })

  test('a pool that is used up ends the wait by the shorter limit', async () => {
    const { pool, hf } = poolOfOne()
    const only = await pool.connect()
    const began = performance.now()
    const run = hf.tx.run(async () => 'never', { retry: { budgetMs: 150 } })
    await expect(run).rejects.toMatchObject({ code: 'POOL_STARVED' })
    inTime(performance.now() - began, 1_500)
    only.release()
  })
})

describe('what is told', () => {
  test.each([
    ['holdfast:tx.committed', undefined],
    ['holdfast:tx.rolled-back', new Error('no')],
    ['holdfast:tx.unknown', holdfastError('COMMIT_UNKNOWN')],
  ] as const)('%s, also to who hears only that, with its times', async (name, error) => {
    const events = eventsOn<TxEvent & { readonly reason?: string }>(name)
    const { pool, hf } = poolOfOne()
    const only = await pool.connect()
    const began = performance.now()
    const run = hf.tx.run(async (tx) => {
      await tx.query('SELECT pg_sleep(0.05)')
      if (error !== undefined) throw error
    })
    const settled = run.catch(() => undefined)
    await waitUntil('it queues', () => pool.waitingCount > 0 || undefined)
    setTimeout(() => only.release(), 60)
    await settled
    const tookMs = performance.now() - began
    expect(events).toHaveLength(1)
    const { durationMs, openMs } = events[0] as TxEvent
    expect(durationMs).toBeLessThanOrEqual(tookMs)
    expect(openMs).toBeGreaterThanOrEqual(50)
    expect(durationMs - openMs).toBeGreaterThanOrEqual(45)
  })

  test('a transaction without a connection was open for as long as it waited for one', async () => {
    const events = eventsOn<TxEvent>('holdfast:tx.rolled-back')
    const { pool, hf } = poolOfOne()
    const only = await pool.connect()
    await hf.tx.run(async () => 1, { retry: { budgetMs: 100 } }).catch(() => undefined)
    only.release()
    const { durationMs, openMs } = events[0] as TxEvent
    expect(openMs).toBeGreaterThan(50)
    expect(openMs).toBeLessThanOrEqual(durationMs)
  })
})

test('what a durable look has read is followed by something to wait for in the log', async () => {
  const driver = fromPg(fixture.pool)
  const sent: string[] = []
  const listening: Pick<typeof driver, 'transaction'> = {
    transaction: (body, settings) =>
      driver.transaction((transaction, opened) => {
        const query = transaction.query.bind(transaction)
        const heard: typeof query = (statement) => {
          sent.push(statement.text)
          return query(statement)
        }
        return body(Object.assign(Object.create(transaction), { query: heard }), opened)
      }, settings),
  }
  const hf = createHoldfast({ ...driver, ...listening })
  const marks = async (durable: boolean): Promise<number> => {
    sent.length = 0
    expect(await hf.tx.run(async () => 'seen', { durable })).toBe('seen')
    return sent.filter((text) => text.includes('pg_logical_emit_message')).length
  }
  expect([await marks(false), await marks(true)]).toEqual([0, 1])
})
