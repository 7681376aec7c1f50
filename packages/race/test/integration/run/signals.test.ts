/** `state: 'restore'` in a process that is told to end. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { withClient } from '@holdfast/testkit'
import { afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { explore } from '../../../src/explore.ts'
import type { Flow } from '../../../src/run/options.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
})
beforeEach(async () => {
  await withClient(url, (client) =>
    client.query(`
      DROP SCHEMA IF EXISTS holdfast_race_kept CASCADE;
      DROP SCHEMA public CASCADE;
      CREATE SCHEMA public;
      CREATE TABLE account (id int PRIMARY KEY, n int NOT NULL);
      CREATE SEQUENCE drawn;
      INSERT INTO account VALUES (1, 100), (2, 200)`),
  )
})
afterEach(() => void vi.unstubAllEnvs())

const asItWas = { rows: '(1,100) (2,200)', drawn: '1', kept: false }

async function contents(): Promise<unknown> {
  return await withClient(url, async (client) => {
    const { rows } = await client.query(`
      SELECT (SELECT string_agg(a::text, ' ' ORDER BY id) FROM account a) AS rows,
             (SELECT last_value::text FROM drawn) AS drawn,
             to_regnamespace('holdfast_race_kept') IS NOT NULL AS kept`)
    return rows[0]
  })
}

interface End {
  readonly code: number | null
  readonly signal: string | null
  readonly out: string
  readonly err: string
}

async function exploreUntil(...args: readonly string[]): Promise<End> {
  const script = fileURLToPath(new URL('../../support/restore-process.ts', import.meta.url))
  const child = spawn(process.execPath, [script, url, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const said = Promise.all([text(child.stdout), text(child.stderr)])
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
  const [out, err] = await said
  return { code, signal, out, err }
}

test.each(['SIGINT', 'SIGTERM', 'SIGHUP'])(
  '%s: rows and sequences are put back, and the process ends by it',
  async (signal) => {
    const end = await exploreUntil(signal)
    expect(end).toMatchObject({ signal, out: '' })
    expect(end.err).toBe(
      `holdfast-race: ${signal}. The exploration was stopped; rows and sequences are as they were before it.\n`,
    )
    expect(await contents()).toEqual(asItWas)
  },
)

test('a program with a listener of its own goes on', async () => {
  const end = await exploreUntil('SIGINT', 'listens')
  expect(end).toMatchObject({ code: 0, signal: null })
  expect(end.out).toBe('heard rejected: explore() was stopped by SIGINT')
  expect(end.err).toMatch(/rows and sequences are as they were before it/)
  expect(await contents()).toEqual(asItWas)
})

test.each(['SIGINT', 'SIGTERM'])(
  '%s: a program whose listener ends it at once is ended when the rows are put back',
  async (signal) => {
    const end = await exploreUntil(signal, 'exits')
    expect(end).toMatchObject({ code: 7, signal: null, out: '' })
    expect(end.err).toMatch(/rows and sequences are as they were before it/)
    expect(await contents()).toEqual(asItWas)
  },
)

const add: Flow = ({ pool }) => pool.query('UPDATE account SET n = n + 1 WHERE id = 1')
const next = (): Promise<{ verdict: string }> =>
  explore({ url, state: 'restore', flows: { a: add, b: add }, onProgress: () => undefined })

test('after SIGKILL the next exploration notices, and puts back or keeps as it is told', async () => {
  expect(await exploreUntil('SIGKILL')).toMatchObject({ signal: 'SIGKILL' })
  // Whatever the flows had got to.
  await withClient(url, (client) => client.query('DELETE FROM account'))

  const told =
    /cut off on \d{4}-\d\d-\d\d \d\d:\d\d UTC[^]*HOLDFAST_RACE_LEFTOVER=restore[^]*HOLDFAST_RACE_LEFTOVER=keep/
  await expect(next()).rejects.toThrow(told)
  await expect(next(), 'nothing was decided').rejects.toThrow(told)

  vi.stubEnv('HOLDFAST_RACE_LEFTOVER', 'restore')
  expect((await next()).verdict).toBe('race-free')
  expect(await contents()).toEqual(asItWas)
})

test('and keeps what is there now, if that is wanted', async () => {
  await exploreUntil('SIGKILL')
  await withClient(url, (client) => client.query('DELETE FROM account WHERE id = 2'))
  await withClient(url, (client) => client.query('UPDATE account SET n = 7'))
  vi.stubEnv('HOLDFAST_RACE_LEFTOVER', 'keep')
  expect((await next()).verdict).toBe('race-free')
  expect(await contents()).toMatchObject({ rows: '(1,7)', kept: false })
})

test('a word that is none is refused', async () => {
  await exploreUntil('SIGKILL')
  vi.stubEnv('HOLDFAST_RACE_LEFTOVER', 'yes')
  await expect(next()).rejects.toThrow(/HOLDFAST_RACE_LEFTOVER must be restore or keep/)
})

test('without a signal nothing is left, neither listeners nor a schema', async () => {
  const listeners = (): number[] =>
    (['SIGINT', 'SIGTERM', 'SIGHUP'] as const).map((one) => process.listenerCount(one))
  const before = listeners()
  expect((await next()).verdict).toBe('race-free')
  expect(listeners()).toEqual(before)
  expect(await contents()).toEqual(asItWas)
})
