/** One request that comes twice while the model thinks. */
import { withClient } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, expect, test, vi } from 'vitest'
import { fromPg } from '../../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../../packages/holdfast/src/index.ts'
import { migrate } from '../../../packages/holdfast/src/schema/index.ts'
import { testDatabase } from '../../../packages/holdfast/test/support/database.ts'
import type { ModelAnswer } from '../src/model.ts'
import { welcomeCredits } from '../src/plan.ts'

/** The first answer is kept back; later ones, of which there should be none, come at once. */
const model = vi.hoisted(() => ({
  runs: 0,
  thinking: Promise.withResolvers<undefined>(),
  answered: Promise.withResolvers<undefined>(),
}))
vi.mock('../src/model.ts', () => ({
  async think(): Promise<ModelAnswer> {
    model.runs += 1
    model.thinking.resolve(undefined)
    if (model.runs === 1) await model.answered.promise
    return { text: 'A poem', cost: 26 }
  },
}))
afterAll(() => vi.unstubAllEnvs())

test('the second one is told so, and the model runs once', async () => {
  const { url } = await testDatabase()
  vi.stubEnv('DATABASE_URL', url)
  const setting = new pg.Pool({ connectionString: url })
  await migrate(fromPg(setting))
  const credits = createHoldfast(fromPg(setting)).credits({ name: 'ai-credits' })
  await credits.grant('ann', welcomeCredits, { operationId: 'welcome' })
  await setting.end()

  const { pool } = await import('../src/database.ts')
  const { ledger } = await import('../src/ledger.ts')
  const send = () => ledger.complete('ann', 'request-1', 'A poem')
  const first = send()
  await model.thinking.promise
  expect(await send()).toEqual({ ok: false, why: 'in-progress' })
  model.answered.resolve(undefined)
  expect(await first).toEqual({ ok: true, text: 'A poem', cost: 26 })
  expect(await send()).toEqual({ ok: false, why: 'already-done' })
  expect(model.runs).toBe(1)
  await pool.end()
  const { rows } = await withClient(url, (client) =>
    client.query("SELECT debited::int, held::int FROM holdfast.balances WHERE key = 'ann'"),
  )
  expect(rows).toEqual([{ debited: 26, held: 0 }])
})
