/**
 * The packed library in every runtime that we promise to work in: one program, the same in all of them. The default run
 * has the oldest Node that we promise, Bun and Deno with two clients; `npm run test:runtimes` has the rest.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { packageRoot, readManifest } from '../../../../scripts/package/entries.ts'
import type { PackedProject } from '../support/packed-project.ts'
import { projectFromRegistry, projectWithPrograms, seenBy } from './project.ts'
import { current, type Runtime, runtime } from './runtime.ts'

const all = process.env['HOLDFAST_RUNTIMES'] === 'all'

const runtimes: Readonly<Record<string, () => Promise<Runtime>>> = {
  'this Node': async () => current,
  'the oldest Node': () => runtime('node', '22.18.0'),
  Bun: () => runtime('bun', '1.4.4'),
  Deno: () => runtime('deno', '2.9.6'),
  ...(all ? { 'Node 22': () => runtime('node', '22.23.3') } : {}),
}
const names = Object.keys(runtimes)
const clients = all ? ['pg', 'postgres', 'kysely', 'drizzle'] : ['pg', 'postgres']

/** What a client with a session sees; others have no leader by session and hear nothing. */
const everything = {
  claims: 20,
  credits: 30,
  exclusion: 2,
  leader: 2,
  lease: 'LEASE_LOST',
  lostConnection: 'CONNECTION_LOST',
  lostUpdate: 1,
  nested: 'TX_NESTED',
  once: 4,
  quota: 10,
  schedule: 1,
  swallowedError: 'TX_ROLLED_BACK',
  waits: ['LOCK_BUSY', 'LOCK_TIMEOUT', 'TX_DEADLINE'],
  wakes: 'hello',
}
const withoutSession = { ...everything, leader: 'no session', wakes: 'no listening' }

const whole = (says: string, by: readonly string[] = clients): object => ({
  runtime: says,
  applied: expect.toSatisfy((count: number) => count > 150),
  seen: Object.fromEntries(
    by.map((name) => [name, /kysely|drizzle/.test(name) ? withoutSession : everything]),
  ),
  unhandled: [],
})

let project: PackedProject

beforeAll(async () => {
  project = await projectWithPrograms()
})

afterAll(async () => {
  await project[Symbol.asyncDispose]()
})

test('the oldest Node that is tried is the oldest that we promise', () => {
  expect(readManifest(packageRoot('holdfast')).engines?.node).toBe('>=22.18')
})

describe.each(names)('%s', { timeout: 300_000 }, (name) => {
  let on: Runtime
  beforeAll(async () => {
    on = await (runtimes[name] as () => Promise<Runtime>)()
  }, 300_000)

  test('keeps every promise of the smoke test', async () => {
    const env = { SMOKE_CLIENTS: clients.join() }
    expect(await seenBy(project, on, 'main.mjs', env)).toEqual(whole(on.says))
  })

  test.runIf(all)('in a worker thread as well', async () => {
    const env = { SMOKE_CLIENTS: clients.join() }
    expect(await seenBy(project, on, 'in-thread.mjs', env)).toEqual(whole(on.says))
  })

  test('four worker threads want one key: one at a time; without the guard three are lost', async () => {
    expect(await seenBy(project, on, 'contend.mjs')).toEqual({
      guarded: { before: 1, n: 4 },
      unguarded: { before: 4, n: 1 },
    })
  })
})

test("Bun's own SQL client is refused, and says what to use", { timeout: 300_000 }, async () => {
  const seen = await seenBy(project, await runtime('bun', '1.4.4'), 'bun-sql.mjs')
  expect(seen).toEqual({
    fromPostgresJs: 'DRIVER_HANDLE_INVALID',
    fromPg: 'DRIVER_HANDLE_INVALID',
    fromDrizzle: 'DRIVER_HANDLE_INVALID',
    names: true,
  })
})

describe.runIf(all)('Neon', { timeout: 300_000 }, () => {
  let neon: PackedProject
  beforeAll(async () => {
    neon = await projectFromRegistry(['pg@8', 'ws@8', '@neondatabase/serverless@1'])
  }, 300_000)
  afterAll(async () => {
    await neon[Symbol.asyncDispose]()
  })

  test.each(['this Node', 'Bun'])('its Pool over WebSocket, in %s', async (name) => {
    const on = await (runtimes[name] as () => Promise<Runtime>)()
    const seen = await seenBy(neon, on, 'main.mjs', { SMOKE_CLIENTS: 'neon' })
    expect(seen).toEqual(whole(on.says, ['neon']))
  })

  test('its client for HTTP is refused', async () => {
    expect(await seenBy(neon, current, 'neon-http.mjs')).toEqual({
      fromPostgresJs: 'DRIVER_HANDLE_INVALID',
      fromPg: 'DRIVER_HANDLE_INVALID',
    })
  })
})
