/**
 * Processes that stand still, as on AWS Lambda: between two invocations or in the middle of one, for longer than their
 * leases and connections last. SIGSTOP is the freeze, `pg_terminate_backend` what becomes of connections meanwhile.
 */
import { waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { fromPg } from '../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast, lockKey } from '../../src/index.ts'
import { testDatabase } from '../support/database.ts'
import type { PackedProject } from '../support/packed-project.ts'
import { FrozenProcess } from './frozen-process.ts'
import { projectWithPrograms } from './project.ts'
import { current, type Runtime, runtime } from './runtime.ts'

const all = process.env['HOLDFAST_RUNTIMES'] === 'all'
const runtimes: Readonly<Record<string, () => Promise<Runtime>>> = {
  'this Node': async () => current,
  ...(all
    ? { Bun: () => runtime('bun', '1.4.4'), Deno: () => runtime('deno', '2.9.6') }
    : undefined),
}
const cases = Object.keys(runtimes).flatMap((name) =>
  ['pg', 'postgres'].map((client) => [name, client] as const),
)

let project: PackedProject
let pool: pg.Pool
let hf: Holdfast<pg.PoolClient>
let url: string

beforeAll(async () => {
  project = await projectWithPrograms()
  ;({ directUrl: url } = await testDatabase('installed'))
  pool = new pg.Pool({ connectionString: url, application_name: 'observer' })
  hf = createHoldfast(fromPg(pool))
  await pool.query('CREATE TABLE counter (name text PRIMARY KEY, n int NOT NULL)')
})

beforeEach(async () => {
  await pool.query(`DELETE FROM counter`)
  await pool.query(`DELETE FROM holdfast.lease`)
  await pool.query(`INSERT INTO counter
    SELECT name, 0 FROM unnest(ARRAY['once', 'guard', 'plain', 'work', 'slow']) AS name`)
})

afterAll(async () => {
  await pool.end()
  await project[Symbol.asyncDispose]()
})

const others = `FROM pg_stat_activity WHERE datname = current_database()
  AND application_name <> 'observer' AND backend_type = 'client backend'`

/** Ends every connection of the handler, as a server or a firewall does with idle ones; how many there were. */
async function endConnections(): Promise<number> {
  const { rows } = await pool.query(`SELECT pg_terminate_backend(pid, 5000) ${others}`)
  return rows.length
}

async function counted(name: string): Promise<number> {
  const { rows } = await pool.query('SELECT n FROM counter WHERE name = $1', [name])
  return rows[0].n
}

async function expired(name: string): Promise<void> {
  await waitUntil('the lease is over', async () =>
    (await hf.leases.read(name))?.state === 'held' ? undefined : true,
  )
}

describe.each(cases)('%s, %s', { timeout: 120_000 }, (name, client) => {
  let on: Runtime
  beforeAll(async () => {
    on = await (runtimes[name] as () => Promise<Runtime>)()
  }, 300_000)

  async function started(env: Readonly<Record<string, string>> = {}): Promise<FrozenProcess> {
    const handler = new FrozenProcess(project, on, {
      DATABASE_URL: url,
      HANDLER_CLIENT: client,
      ...env,
    })
    onTestFinished(() => handler[Symbol.asyncDispose]())
    await handler.ready()
    return handler
  }

  test('its connections died while it was frozen: the next invocation works, and nothing is done twice', async () => {
    const user = crypto.randomUUID()
    await hf.credits({ name: 'credits' }).grant(user, 10, { operationId: crypto.randomUUID() })
    const handler = await started()
    const order = (): object => ({ id: crypto.randomUUID(), user })
    expect(await handler.invoke('order', order())).toMatchObject({ result: { spent: true } })
    for (let round = 2; round <= 4; round += 1) {
      await handler.freeze()
      const { rows } = await pool.query(`SELECT state, backend_xid, backend_xmin ${others}`)
      expect(rows.length).toBeGreaterThan(0)
      // What stands still holds nothing: no transaction, no lock.
      for (const row of rows)
        expect(row).toEqual({ state: 'idle', backend_xid: null, backend_xmin: null })
      const locks = await pool.query(
        `SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid IN (SELECT pid ${others})`,
      )
      expect(locks.rows).toEqual([])
      expect(await endConnections()).toBeGreaterThan(0)
      // Sent while it stands still: it wakes up to this and to the end of its connections at the same moment.
      const event = order()
      const call = handler.send('order', event)
      handler.thaw()
      expect(await handler.answerTo(call)).toMatchObject({ result: { spent: true } })
      // The platform sends it once more. Only the guard, which has no id, counts it again.
      expect(await handler.invoke('order', event)).toMatchObject({ result: { spent: true } })
      expect(await counted('once')).toBe(round)
      const { available } = await hf.credits({ name: 'credits' }).balance(user)
      expect(available).toBe(10 - round)
    }
    expect(await counted('guard')).toBe(7)
    expect(await handler.invoke('end')).toMatchObject({ result: { unhandled: [] } })
    expect(await handler.ended()).toBe(0)
  })

  test('control: what is sent again without an id is done twice', async () => {
    const handler = await started()
    const first = await handler.invoke('plain')
    await handler.freeze()
    await endConnections()
    const call = handler.send('plain')
    handler.thaw()
    await handler.answerTo(call)
    // Whatever it was told, somebody sends it again.
    await handler.invoke('plain')
    await handler.invoke('plain')
    expect(first).toMatchObject({ result: 'done' })
    expect(await counted('plain')).toBeGreaterThanOrEqual(3)
  })

  test('a lease that ran out while it was frozen: it is told before it works, and the fence refuses', async () => {
    const handler = await started()
    const held = await handler.invoke('hold', { ttl: '1 s' })
    await handler.freeze()
    await expired('worker')
    await using next = await hf.leases.acquire('worker', { ttl: '1 min' })
    expect(next.token).toBeGreaterThan(BigInt(held.result as string))
    await endConnections()
    const looks = handler.send('work', { look: true, fence: true })
    handler.thaw()
    expect(await handler.answerTo(looks)).toMatchObject({ result: { stopped: 'LEASE_LOST' } })
    // It does not look, and the fence refuses all the same.
    expect(await handler.invoke('work', { look: false, fence: true })).toMatchObject({
      code: 'LEASE_LOST',
    })
    expect(await counted('work')).toBe(0)
    // Control: without the fence a process that does not look writes beside the one that holds the lease.
    expect(await handler.invoke('work', { look: false, fence: false })).toMatchObject({
      result: 'written',
    })
    expect(await counted('work')).toBe(1)
    expect(await handler.invoke('end')).toMatchObject({ result: { unhandled: [] } })
  })

  test('frozen in the middle of a guard, its connection ended: others go on, and its body runs again', async () => {
    const handler = await started()
    const id = handler.send('slow')
    await handler.inside(id)
    await handler.freeze()
    const key = lockKey('handler', 'slow')
    const add = (): Promise<unknown> =>
      hf.guard(key, (tx) => tx.query(`UPDATE counter SET n = n + 1 WHERE name = 'slow'`), {
        waitMs: 300,
      })
    // Control: for as long as its connection is there, so is its lock.
    await expect(add()).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' })
    await endConnections()
    await add()
    handler.send('go on')
    handler.thaw()
    // What it had read is old: it reads again.
    expect(await handler.answerTo(id)).toMatchObject({ result: { runs: 2 } })
    expect(await counted('slow')).toBe(2)
    expect(await handler.invoke('end')).toMatchObject({ result: { unhandled: [] } })
  })

  test('frozen for longer than its deadline: TX_DEADLINE, and nothing is written', async () => {
    const handler = await started({ HANDLER_DEADLINE: '500 ms' })
    const id = handler.send('slow')
    await handler.inside(id)
    await handler.freeze()
    // By the clock of the server, which goes on: the time of the invocation is over.
    await pool.query('SELECT pg_sleep(0.6)')
    handler.send('go on')
    handler.thaw()
    expect(await handler.answerTo(id)).toMatchObject({ code: 'TX_DEADLINE' })
    expect(await counted('slow')).toBe(0)
    expect(await handler.invoke('end')).toMatchObject({ result: { unhandled: [] } })
    // Control: with more time than it was frozen for, the same invocation writes.
    const patient = await started()
    const again = patient.send('slow')
    await patient.inside(again)
    await patient.freeze()
    await pool.query('SELECT pg_sleep(0.6)')
    patient.send('go on')
    patient.thaw()
    expect(await patient.answerTo(again)).toMatchObject({ result: { runs: 1 } })
    expect(await counted('slow')).toBe(1)
  })
})
