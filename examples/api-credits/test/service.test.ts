import { randomUUID } from 'node:crypto'
import { waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fromPg } from '../../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../../packages/holdfast/src/index.ts'
import { migrate } from '../../../packages/holdfast/src/schema/index.ts'
import { testDatabase } from '../../../packages/holdfast/test/support/database.ts'
import { type Service, startService } from '../demo/start-service.ts'
import { estimatedCredits, monthlyCalls, welcomeCredits } from '../src/plan.ts'
import { fromSource } from './from-source.ts'

let databaseUrl: string
let service: Service
let pool: pg.Pool

beforeAll(async () => {
  ;({ url: databaseUrl } = await testDatabase())
  pool = new pg.Pool({ connectionString: databaseUrl })
  await migrate(fromPg(pool))
  service = await startService(databaseUrl, {
    MODEL_MS: '5',
    NODE_OPTIONS: `--import=${fromSource}`,
  })
})

afterAll(async () => {
  await service?.stop()
  await pool?.end()
})

async function post(
  path: string,
  body: unknown = {},
  id: string | null = randomUUID(),
  { url } = service,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(`${url}/users/${path}`, {
    method: 'POST',
    headers: id === null ? {} : { 'idempotency-key': id },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

async function balance(book: string, user: string): Promise<Record<string, unknown> | undefined> {
  const { rows } = await pool.query(
    'SELECT debited::int, held::int FROM holdfast.balances WHERE book = $1 AND key = $2',
    [book, user],
  )
  return rows[0]
}

describe('calls', () => {
  test('are counted once each, and refused with the moment to come back', async () => {
    const [user, id] = [randomUUID(), randomUUID()]
    expect(await post(`${user}/calls`, {}, id)).toEqual({
      status: 200,
      body: { left: monthlyCalls - 1 },
    })
    expect(await post(`${user}/calls`, {}, id)).toEqual({
      status: 200,
      body: { left: monthlyCalls - 1 },
    })
    for (let n = 1; n < monthlyCalls; n += 1) await post(`${user}/calls`)
    expect(await post(`${user}/calls`)).toEqual({
      status: 429,
      body: { error: 'quota-exceeded', retryAt: expect.stringMatching(/^\d{4}-\d\d-01T/) },
    })
    expect(await post(`${user}/calls`, {}, id)).toMatchObject({ status: 200 })
    expect(await balance('api-calls', user)).toEqual({ debited: monthlyCalls, held: 0 })
  })
})

describe('completions', () => {
  const prompt = 'A poem'

  test('cost what they cost, once', async () => {
    const [user, id] = [randomUUID(), randomUUID()]
    const credits = createHoldfast(fromPg(pool)).credits({ name: 'ai-credits' })
    await credits.grant(user, welcomeCredits, { operationId: 'welcome' })
    expect(await post(`${user}/completions`, { prompt }, id)).toEqual({
      status: 200,
      body: { text: expect.any(String), cost: 26 },
    })
    expect(await post(`${user}/completions`, { prompt }, id)).toEqual({
      status: 409,
      body: { error: 'already-done' },
    })
    expect(await balance('ai-credits', user)).toEqual({ debited: 26, held: 0 })
    expect((await post(`${user}/completions`, { prompt })).status).toBe(200)
    expect((await post(`${user}/completions`, { prompt })).status).toBe(200)
    expect(await post(`${user}/completions`, { prompt })).toEqual({
      status: 402,
      body: { error: 'not-enough-credits' },
    })
  })

  test('are worked on by one process at a time, and by another one if that dies', async () => {
    const [user, id] = [randomUUID(), randomUUID()]
    const credits = createHoldfast(fromPg(pool)).credits({ name: 'ai-credits' })
    await credits.grant(user, welcomeCredits, { operationId: 'welcome' })
    const slow = { MODEL_MS: '600000', LEASE_TTL: '1 s', NODE_OPTIONS: `--import=${fromSource}` }
    const doomed = await startService(databaseUrl, slow)
    const lost = post(`${user}/completions`, { prompt }, id, doomed).catch(() => undefined)
    await waitUntil('its model thinks', async () =>
      (await balance('ai-credits', user))?.['held'] === estimatedCredits ? true : undefined,
    )
    const again = () => post(`${user}/completions`, { prompt }, id)
    expect(await again()).toEqual({ status: 409, body: { error: 'in-progress' } })
    await doomed.kill()
    await lost
    const { body } = await waitUntil('its lease is over', async () => {
      const answer = await again()
      return answer.status === 409 ? undefined : answer
    })
    expect(body).toEqual({ text: expect.any(String), cost: 26 })
    expect(await balance('ai-credits', user)).toEqual({ debited: 26, held: 0 })
  })

  test.each(['', '{}', '{"prompt":1}', 'null', '['])('refuse the body %j', async (body) => {
    expect(await post('ann/completions', body)).toEqual({
      status: 400,
      body: { error: 'prompt-missing' },
    })
  })
})

test.each([null, '', 'short', 'x'.repeat(65)])('refuses the idempotency key %j', async (id) => {
  expect(await post('ann/calls', {}, id)).toEqual({
    status: 400,
    body: { error: 'idempotency-key-missing' },
  })
})

test('knows its paths and one method', async () => {
  expect((await fetch(`${service.url}/users`)).status).toBe(404)
  expect((await fetch(`${service.url}/users/ann/calls`)).status).toBe(404)
})
