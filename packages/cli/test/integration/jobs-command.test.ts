/** R10: dead jobs on the command line. */
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fromPg } from '../../../holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../../holdfast/src/index.ts'
import { migrate } from '../../../holdfast/src/schema/index.ts'
import { type Result, runCommand } from '../support/run-command.ts'
import { testDatabase } from '../../../holdfast/test/support/database.ts'

let url: string
let pool: pg.Pool
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  pool = new pg.Pool({ connectionString: url, max: 2 })
  await migrate(fromPg(pool))
})
afterAll(async () => await pool.end())

const holdfast = (...args: string[]): Promise<Result> =>
  runCommand(['jobs', ...args], { DATABASE_URL: url })
const json = async <T>(...args: string[]): Promise<T> =>
  JSON.parse((await holdfast(...args, '--json')).out) as T

test('R10: dead jobs are listed, shown, retried and deleted, and nothing changes without --yes', async () => {
  expect((await holdfast()).out).toBe('No job is dead.\n')
  const work = createHoldfast(fromPg(pool)).work({ queue: 'emails' })
  await work.enqueue(['a', 'b', 'c'].map((payload) => ({ payload, scope: 'acme', maxAttempts: 1 })))
  await work.fail(await work.claim(3), { error: new Error('no such\u001b[31m address') })

  const { out, code } = await holdfast('dead', '--queue', 'emails', '--limit', '2')
  expect(code).toBe(0)
  expect(out).toContain('no such')
  expect(out).not.toContain('\u001b[31m')
  expect(out).toContain('More: --after')
  expect((await holdfast('dead', '--queue', 'others')).out).toBe('No job of this queue is dead.\n')

  const { jobs } = await json<{ jobs: { row: { id: string; payload: string } }[] }>('dead')
  expect(jobs.map(({ row }) => row.payload)).toEqual(['a', 'b', 'c'])
  const ids = jobs.map(({ row }) => row.id) as [string, string, string]
  expect((await holdfast('show', ids[0])).out).toContain('payload: a')
  expect(await holdfast('show', '00000000-0000-4000-8000-000000000000')).toMatchObject({ code: 1 })
  for (const verb of ['show', 'retry', 'delete']) {
    expect(await holdfast(verb, 'nonsense')).toMatchObject({ code: 2 })
    // Also where it would not do it yet.
    expect((await holdfast(verb, '00000000-0000-4000-8000-000000000000')).err).toContain(
      'no dead job',
    )
  }

  expect(await holdfast('retry', ids[0])).toMatchObject({
    code: 3,
    out: expect.stringContaining('add --yes') as string,
  })
  expect(await work.claim()).toEqual([])
  expect(await holdfast('retry', ids[0], '--yes')).toMatchObject({
    code: 0,
    out: 'Can be claimed again: 1.\n',
  })
  expect((await work.claim()).map(({ row }) => row.payload)).toEqual(['a'])
  expect(await holdfast('delete', 'all', '--yes')).toMatchObject({ code: 0, out: 'Deleted: 2.\n' })
  expect(await holdfast('delete', ids[1], '--yes')).toMatchObject({ code: 1 })
  expect((await holdfast('retry')).code).toBe(2)
})
