/**
 * The example, copied out and installed from tarballs, as a process. HOLDFAST_NESTJS=all (`npm run test:nestjs`) does so
 * with NestJS 11 and 12 from the registry, as CommonJS and as ES modules, on Express and Fastify.
 */
import { randomUUID } from 'node:crypto'
import { createHoldfast, lockKey } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { testDatabase } from '../../../packages/holdfast/test/support/database.ts'
import { copyOut, type Project, type Variant } from './copied-project.ts'
import { type Outcome, type RunningApp, startApp } from './running-app.ts'

const all: readonly Variant[] = [
  { nest: '11', modules: 'commonjs', platform: 'express' },
  { nest: '11', modules: 'commonjs', platform: 'fastify' },
  { nest: '12', modules: 'commonjs', platform: 'express' },
  { nest: '12', modules: 'module', platform: 'fastify' },
]
const brief: readonly Variant[] = [{ nest: 'installed', modules: 'commonjs', platform: 'express' }]
const variants = process.env['HOLDFAST_NESTJS'] === 'all' ? all : brief
// Programs that were just installed are read from the disk for the first time.
vi.setConfig({ testTimeout: 240_000 })

describe.each(variants)('Nest $nest, $modules, $platform', (variant) => {
  let project: Project
  let pool: pg.Pool
  let url = ''

  beforeAll(async () => {
    const database = await testDatabase()
    url = database.url
    pool = new pg.Pool({ connectionString: url })
    project = await copyOut(variant)
  }, 600_000)

  afterAll(async () => {
    await pool?.end()
    await project?.remove()
  })

  async function start(main = project.main): Promise<RunningApp> {
    const app = await startApp(main, url)
    onTestFinished(async () => {
      app.process.kill('SIGKILL')
      await app.ended
    })
    return app
  }

  async function count(text: string, ...values: unknown[]): Promise<number> {
    const { rows } = await pool.query<{ n: number }>(
      `SELECT count(*)::int AS n FROM ${text}`,
      values,
    )
    return rows[0]?.n as number
  }

  test('U9: guarded, once, idempotent, a quota and a tick, each with its answer', async () => {
    const app = await start()
    const sales = await Promise.all(
      ['a', 'b', 'c'].map((id) => app.post('shows/faust/tickets', { id })),
    )
    expect(sales.map(({ status }) => String(status)).toSorted()).toEqual(['201', '409', '409'])
    expect(await count("ticket WHERE show = 'faust'")).toBe(1)

    const event = { id: randomUUID(), amount: 30 }
    const paid = [await app.post('webhooks/paid', event), await app.post('webhooks/paid', event)]
    expect(paid.map(({ status }) => status)).toEqual([200, 200])
    expect(paid[1]?.body).toEqual(paid[0]?.body)
    expect((await app.post('webhooks/paid', { ...event, amount: 31 })).status).toBe(422)
    expect(await count('payment WHERE event = $1', event.id)).toBe(1)

    const order = { id: randomUUID() }
    const headers = { 'idempotency-key': randomUUID(), 'x-user': 'ann' }
    const orders = [
      await app.post('shows/hamlet/orders', order, headers),
      await app.post('shows/hamlet/orders', order, headers),
    ]
    expect(orders.map(({ status }) => status)).toEqual([201, 201])
    expect(orders[1]?.body).toEqual(orders[0]?.body)
    expect(orders[1]?.headers).toMatchObject({ 'idempotency-replayed': 'true' })
    expect(await count('ticket WHERE id = $1', order.id)).toBe(1)

    const calls: Outcome[] = []
    for (let n = 0; n < 4; n += 1) calls.push(await app.post('calls', {}, { 'x-user': 'ann' }))
    expect(calls.map(({ status }) => status)).toEqual([200, 200, 200, 429])
    expect(calls[3]?.headers).toMatchObject({
      'retry-after': expect.stringMatching(/^\d+$/),
      'content-type': expect.stringMatching(/^application\/problem\+json/),
    })
    expect(calls[3]?.body).toEqual({
      status: 429,
      title: expect.any(String),
      reason: 'insufficient',
    })
    expect(app.said()).not.toMatch(/WARN|Content-Type/)

    expect(await app.get('health')).toMatchObject({ status: 200, body: { database: {} } })
    await expect.poll(() => count('report'), { timeout: 20_000 }).toBeGreaterThan(0)
  })

  /** Requests that are under way for certain: they wait for a lock that the test has. */
  async function endUnderLoad(
    app: RunningApp,
  ): Promise<{ waiting: Map<string, Outcome>; load: Map<string, Outcome>; signal: unknown }> {
    const holder = await pool.connect()
    onTestFinished(() => holder.release(true))
    await holder.query('BEGIN')
    const hf = createHoldfast(fromPg(pool), { locks: { watch: false } })
    await hf.locks.acquire(holder, lockKey('show', 'hamlet'))
    const waiting = new Map<string, Outcome>()
    const load = new Map<string, Outcome>()
    const ask = async (path: string, into: Map<string, Outcome>): Promise<Outcome> => {
      const id = randomUUID()
      const outcome = await app.post(path, { id, amount: 1 })
      into.set(id, outcome)
      return outcome
    }
    const asked = Array.from({ length: 8 }, () => ask('shows/hamlet/tickets', waiting))
    const { rows } = await holder.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    const blocked = 'pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))'
    await expect.poll(() => count(blocked, rows[0]?.pid), { timeout: 20_000 }).toBeGreaterThan(0)
    // All others go on, with work of another kind, until nobody listens any more.
    const workers = Array.from({ length: 8 }, async () => {
      while ((await ask('webhooks/paid', load)).error !== 'ECONNREFUSED');
    })
    await expect.poll(() => load.size, { timeout: 20_000 }).toBeGreaterThan(40)
    app.process.kill('SIGTERM')
    // It has stopped to listen.
    await Promise.all(workers)
    await holder.query('COMMIT')
    await Promise.all(asked)
    return { waiting, load, signal: await app.ended }
  }

  async function compare(outcomes: Map<string, Outcome>, table: string): Promise<void> {
    for (const [id, { status = 0 }] of outcomes) {
      const rows = await count(`${table} = $1`, id)
      expect([id, status, rows]).toEqual([id, status, status >= 200 && status < 300 ? 1 : 0])
    }
  }

  test('U9: SIGTERM under load: what was begun is answered, and what was answered is there once', async () => {
    const { waiting, load, signal } = await endUnderLoad(await start())
    expect([...waiting.values()].map(({ status }) => status)).toEqual(Array(8).fill(201))
    await compare(waiting, 'ticket WHERE id')
    // Nothing was done that nobody was told of.
    await compare(load, 'payment WHERE event')
    expect(signal).toBe('SIGTERM')
  })

  test('control: without the shutdown hooks, requests that were begun are not answered', async () => {
    const { waiting } = await endUnderLoad(await start(project.withoutHooks))
    expect([...waiting.values()].map(({ status }) => status)).toEqual(Array(8).fill(undefined))
  })
})
