/** The loop around the verbs: heartbeats, lost claims, stopping. */
import { type Deferred, deferred, waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import type {
  ClaimsLostEvent,
  ClaimsTroubleEvent,
  RunOptions,
  Worker,
} from '../../../src/entries/claims.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast } from '../../../src/index.ts'
import { breakableWire } from '../../support/breakable-wire.ts'
import { claimsFixture, expire, ids, optionsFor, type Task } from '../../support/claims-fixture.ts'
import { eventsOn } from '../../support/pg-fixture.ts'

const fixture = claimsFixture()

type Started = Promise<{
  name: string
  worker: Worker
  claims: Awaited<ReturnType<typeof fixture.table>>['claims']
}>

async function start(
  rows: number,
  options: RunOptions<pg.PoolClient, Task>,
  lease: number = 30_000,
): Started {
  const { name, claims } = await fixture.table(rows, { lease })
  const worker = await claims.run({ poll: { min: 5, max: 20 }, ...options })
  onTestFinished(async () => void (await worker.stop({ within: 1 })))
  return { name, worker, claims }
}

const states = async (name: string): Promise<string[]> =>
  (await fixture.rows(name)).map(({ state }) => state)

/** A handler that waits to be let go, or for its signal. */
function gate(): {
  entered: { id: string; signal: AbortSignal }[]
  open: Deferred<void>
  handler: NonNullable<RunOptions<pg.PoolClient, Task>['handler']>
} {
  const open = deferred<void>()
  const entered: { id: string; signal: AbortSignal }[] = []
  return {
    entered,
    open,
    async handler({ id }, { signal }) {
      entered.push({ id, signal })
      await new Promise<void>((resolve, reject) => {
        void open.promise.then(resolve)
        signal.addEventListener('abort', () => reject(signal.reason as Error))
      })
    },
  }
}

describe('a worker', () => {
  test('works on everything, oldest first, as many at a time as it may', async () => {
    const order: number[] = []
    let most = 0
    const { name, worker } = await start(30, {
      concurrency: 4,
      async handler({ id }) {
        order.push(Number(id))
        most = Math.max(most, worker?.active ?? 0)
        await new Promise(setImmediate)
      },
    })
    await worker.drain()
    expect(order).toEqual(Array.from({ length: 30 }, (_, at) => at + 1))
    expect(most).toBeLessThanOrEqual(4)
    expect(new Set(await states(name))).toEqual(new Set(['ok']))
    expect(worker.active).toBe(0)
  })

  test('tries a failed row again, and gives up at the last attempt', async () => {
    const troubles = eventsOn<ClaimsTroubleEvent>('holdfast:claims.trouble')
    const tries = new Map<string, number>()
    const { name, worker } = await start(3, {
      async handler({ id }, { attempt }) {
        tries.set(id, attempt ?? 0)
        if (id === '2') throw new Error('never')
        if (id === '3' && attempt === 1) throw new Error('not yet')
      },
    })
    await waitUntil('all are done or dead', async () => {
      const now = await states(name)
      return now.every((state) => ['ok', 'given up'].includes(state)) || undefined
    })
    await worker.stop()
    expect(await states(name)).toEqual(['ok', 'given up', 'ok'])
    expect(Object.fromEntries(tries)).toEqual({ 1: 1, 2: 5, 3: 2 })
    expect(troubles.filter(({ during }) => during === 'handler')).toHaveLength(6)
  })

  test('sees new rows by looking again, and at once when it is told', async () => {
    const { name, worker } = await start(0, {
      handler: async () => 1,
      poll: { min: 60_000, max: 60_000 },
    })
    // It has looked once, and would look again in a minute.
    await waitUntil('it sleeps', () => worker.active === 0 || undefined)
    await fixture.observer.query(`INSERT INTO ${name} DEFAULT VALUES`)
    await waitUntil('the row is done', async () => {
      worker.wake()
      return (await states(name))[0] === 'ok' || undefined
    })
    await waitUntil('it has heard so', () => worker.active === 0 || undefined)
    expect(await states(name)).toEqual(['ok'])
  })

  test('sees a row that falls due', async () => {
    const { name, worker } = await start(1, { handler: async () => 1 })
    await fixture.observer.query(
      `INSERT INTO ${name} (due) VALUES (clock_timestamp() + interval '150 ms')`,
    )
    await waitUntil(
      'both are done',
      async () => (await states(name)).every((state) => state === 'ok') || undefined,
    )
    await worker.stop()
    expect(await states(name)).toEqual(['ok', 'ok'])
  })
})

describe('heartbeats', () => {
  test('keep claims that take longer than their lease', async () => {
    const { open, handler, entered } = gate()
    const { name, worker, claims } = await start(3, { handler }, 300)
    await waitUntil('all run', () => entered.length === 3 || undefined)
    const began = performance.now()
    await waitUntil('three leases have passed', async () => {
      expect(await claims.recover()).toEqual({ freed: 0, dead: 0 })
      return performance.now() - began > 900 || undefined
    })
    expect(entered.some(({ signal }) => signal.aborted)).toBe(false)
    open.resolve()
    await worker.stop()
    expect(await states(name)).toEqual(['ok', 'ok', 'ok'])
  })

  test('find out that a claim is lost: the signal says so, nothing is written', async () => {
    const { handler, entered } = gate()
    const lost = eventsOn<ClaimsLostEvent>('holdfast:claims.lost')
    const { name, worker } = await start(2, { handler, recoverEvery: false }, 300)
    await waitUntil('both run', () => entered.length === 2 || undefined)
    await fixture.observer.query(`UPDATE ${name} SET token = gen_random_uuid() WHERE id = 1`)
    const mine = entered.find(({ id }) => id === '1')
    await waitUntil('it is told', () => mine?.signal.aborted || undefined)
    expect(mine?.signal.reason).toMatchObject({ code: 'CLAIM_LOST' })
    expect(entered.find(({ id }) => id === '2')?.signal.aborted).toBe(false)
    await waitUntil('its handler ended', () => worker.active === 1 || undefined)
    expect(lost).toEqual([{ table: name, verb: 'heartbeat', count: 1 }])
    expect(await fixture.rows(name)).toMatchObject([{ state: 'busy', tries: 1, why: null }, {}])
  })

  test('without any answer, the claim ends by our own clock', async () => {
    const wire = await breakableWire(fixture.database.url)
    const pool = new pg.Pool({ connectionString: wire.url, max: 4 })
    pool.on('error', () => undefined)
    onTestFinished(async () => {
      wire.cut()
      await pool.end().catch(() => undefined)
      await wire[Symbol.asyncDispose]()
    })
    const { name } = await fixture.table(1)
    const claims = createHoldfast(fromPg(pool)).claims<Task>({ ...optionsFor(name), lease: 400 })
    const { handler, entered } = gate()
    const worker = await claims.run({ handler, poll: { min: 5, max: 5 }, recoverEvery: false })
    const [mine] = await waitUntil('it runs', () => (entered.length === 1 ? entered : undefined))
    wire.hold()
    await waitUntil('it is told', () => mine?.signal.aborted || undefined)
    expect(mine?.signal.reason).toMatchObject({ code: 'CLAIM_LOST' })
    wire.cut()
    await worker.stop()
  })

  test('a sweep by any worker gives back what a dead one had', async () => {
    const { name, claims } = await fixture.table(2, { lease: 200 })
    expect(ids(await claims.claim(2))).toEqual([1, 2])
    const seen: number[] = []
    const worker = await claims.run({
      poll: { min: 5, max: 20 },
      recoverEvery: 50,
      handler: async ({ id }) => seen.push(Number(id)),
    })
    await waitUntil(
      'both are done',
      async () => (await states(name)).every((state) => state === 'ok') || undefined,
    )
    await worker.stop()
    expect(seen).toEqual([1, 2])
  })
})

describe('stopping', () => {
  test('waits for handlers and claims nothing more', async () => {
    const { open, handler, entered } = gate()
    const { name, worker } = await start(5, { concurrency: 2, handler })
    await waitUntil('two run', () => entered.length === 2 || undefined)
    let stopped = false
    const stopping = worker.stop().then(() => {
      stopped = true
    })
    await new Promise(setImmediate)
    expect(stopped).toBe(false)
    open.resolve()
    await stopping
    expect(await states(name)).toEqual(['ok', 'ok', 'new', 'new', 'new'])
  })

  test('after its time, handlers are told, and their rows are free as before', async () => {
    const { handler, entered } = gate()
    const { name, worker } = await start(1, { handler })
    await waitUntil('it runs', () => entered.length === 1 || undefined)
    await worker.stop({ within: 10 })
    expect(entered[0]?.signal.reason).toMatchObject({ code: 'CLAIM_STOPPED' })
    expect(await fixture.rows(name)).toMatchObject([{ state: 'new', tries: 0 }])
  })

  test('a handler that does not heed its signal is left, and its row comes back', async () => {
    const troubles = eventsOn<ClaimsTroubleEvent>('holdfast:claims.trouble')
    const open = deferred<void>()
    const { name, worker, claims } = await start(2, { handler: () => open.promise }, 300)
    await waitUntil('both run', () => worker.active === 2 || undefined)
    expect(await worker.stop({ within: 10, leaveAfter: 10 })).toEqual({ left: 2 })
    expect(troubles.at(-1)).toMatchObject({
      table: name,
      during: 'handler',
      error: { code: 'CLAIM_STOPPED' },
    })
    // Not given back at once: they are still being worked on. Nobody makes their leases longer.
    expect(await states(name)).toEqual(['busy', 'busy'])
    let freed = 0
    await waitUntil('the leases are over', async () => {
      freed += (await claims.recover()).freed
      return freed === 2 || undefined
    })
    open.resolve()
    await waitUntil('both have ended', () => worker.active === 0 || undefined)
    // What they did was fenced: the rows are not theirs.
    expect(await fixture.rows(name)).toMatchObject([
      { state: 'new', tries: 1 },
      { state: 'new', tries: 1 },
    ])
  })

  test('one that ends late, within its lease, is completed all the same', async () => {
    const open = deferred<void>()
    const { name, worker } = await start(1, { handler: () => open.promise })
    await waitUntil('it runs', () => worker.active === 1 || undefined)
    expect(await worker.stop({ within: 1, leaveAfter: 1 })).toEqual({ left: 1 })
    open.resolve()
    await waitUntil('it is done', async () => (await states(name))[0] === 'ok' || undefined)
    expect(await worker.stop()).toEqual({ left: 0 })
  })

  test('what a claim under way brings is given back', async () => {
    const { name, claims } = await fixture.table(3)
    const blocker = await fixture.observer.connect()
    onTestFinished(() => blocker.release(true))
    await blocker.query('BEGIN')
    await blocker.query(`LOCK TABLE ${name} IN SHARE MODE`)
    const handled: string[] = []
    const running = await claims.run({
      handler: async ({ id }) => {
        handled.push(id)
      },
    })
    await waitUntil('the claim waits', async () => {
      const { rows } = await fixture.observer.query(
        'SELECT FROM pg_locks WHERE NOT granted AND relation = $1::regclass',
        [name],
      )
      return rows.length > 0 || undefined
    })
    const stopping = running.stop()
    await blocker.query('COMMIT')
    expect(await stopping).toEqual({ left: 0 })
    expect(handled).toEqual([])
    expect(await fixture.rows(name)).toMatchObject([
      { state: 'new', tries: 0 },
      { state: 'new', tries: 0 },
      { state: 'new', tries: 0 },
    ])
  })

  test('await using stops it', async () => {
    const { name, claims } = await fixture.table(3)
    {
      await using worker = await claims.run({ handler: async () => 1, poll: { min: 5, max: 5 } })
      await waitUntil(
        'all done',
        async () => (await states(name)).every((state) => state === 'ok') || undefined,
      )
      // The database knows a moment before the worker does.
      await waitUntil('none at work', () => worker.active === 0 || undefined)
    }
    await fixture.observer.query(`INSERT INTO ${name} DEFAULT VALUES`)
    expect((await claims.claim(9)).length).toBe(1)
  })
})

describe('a handler in a transaction', () => {
  test('commits its writes together with the end of the row', async () => {
    const { name, claims } = await fixture.table(20)
    await fixture.observer.query(`CREATE TABLE effect_${name} (task bigint)`)
    const worker = await claims.run({
      transactionHandler: async (tx, { id }, { attempt }) => {
        await tx.query(`INSERT INTO effect_${name} VALUES ($1)`, [id])
        if (Number(id) % 5 === 0 && attempt === 1) throw new Error('after the write')
      },
      poll: { min: 5, max: 20 },
    })
    await waitUntil(
      'all done',
      async () => (await states(name)).every((state) => state === 'ok') || undefined,
    )
    await worker.stop()
    const { rows } = await fixture.observer.query(
      `SELECT count(*)::int AS n, count(DISTINCT task)::int AS different FROM effect_${name}`,
    )
    expect(rows).toEqual([{ n: 20, different: 20 }])
  })

  test('is rolled back if the claim was lost meanwhile', async () => {
    const { name, claims } = await fixture.table(1)
    await fixture.observer.query(`CREATE TABLE effect_${name} (task bigint)`)
    const [written, goOn] = [deferred<void>(), deferred<void>()]
    const worker = await claims.run({
      transactionHandler: async (tx, { id }) => {
        await tx.query(`INSERT INTO effect_${name} VALUES ($1)`, [id])
        written.resolve()
        await goOn.promise
      },
    })
    await written.promise
    await expire(fixture.observer, name)
    await claims.recover()
    const [other] = await claims.claim()
    goOn.resolve()
    await waitUntil('it ended', () => worker.active === 0 || undefined)
    const { rows } = await fixture.observer.query(`SELECT FROM effect_${name}`)
    expect(rows).toEqual([])
    expect((await claims.complete(other ?? [])).lost).toEqual([])
    await worker.stop()
  })

  test('control: written outside that transaction, the effect stays', async () => {
    const { name, claims } = await fixture.table(1)
    await fixture.observer.query(`CREATE TABLE effect_${name} (task bigint)`)
    const [claim] = await claims.claim()
    await fixture.pool.query(`INSERT INTO effect_${name} VALUES ($1)`, [claim?.row.id])
    await expire(fixture.observer, name)
    await claims.recover()
    expect((await claims.complete(claim ?? [])).lost).toHaveLength(1)
    const { rows } = await fixture.observer.query(`SELECT FROM effect_${name}`)
    expect(rows).toHaveLength(1)
  })
})

test('a handler that completes in its own transaction is not completed again', async () => {
  const lost = eventsOn<ClaimsLostEvent>('holdfast:claims.lost')
  const { name, claims } = await fixture.table(3, { deleteDone: true })
  const worker = await claims.run({
    handler: async (_, { claim }) => {
      await fixture.hf.transaction(async (tx) => {
        await claims.complete(tx, claim)
      })
    },
  })
  await worker.drain()
  expect(await fixture.rows(name)).toEqual([])
  expect(lost).toEqual([])
})

test('NOTIFY is a hint, where the client can listen', async ({ skip }) => {
  if (fixture.database.throughPooler) skip()
  const { name, claims } = await fixture.table(0)
  const worker = await claims.run({
    handler: async () => 1,
    listen: `wake_${name}`,
    poll: { min: 60_000, max: 60_000 },
  })
  onTestFinished(async () => void (await worker.stop()))
  await fixture.observer.query(`INSERT INTO ${name} DEFAULT VALUES`)
  await waitUntil('the row is done', async () => {
    await fixture.observer.query(`NOTIFY wake_${name}`)
    return (await states(name))[0] === 'ok' || undefined
  })
  expect(worker.active).toBe(0)
})

test('a worker needs a handler', async () => {
  const { claims } = await fixture.table(0)
  await expect(claims.run({} as never)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  await expect(claims.run({ handler: async () => 1, concurrency: 0 })).rejects.toMatchObject({
    code: 'OPTION_INVALID',
  })
})

test('two handlers are refused: one of them would never run', async () => {
  const { claims } = await fixture.table(1)
  const handler = async (): Promise<void> => {}
  const both = { handler, transactionHandler: handler } as never
  await expect(claims.run(both)).rejects.toMatchObject({
    code: 'OPTION_INVALID',
    details: { option: 'transactionHandler' },
  })
})
