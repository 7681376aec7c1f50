/** However many look, the database has the same work. */
import { deferred, waitUntil } from '@holdfast/testkit'
import { createObserver, type Observer } from 'holdfast/observe'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  auth,
  bearer,
  codeOf,
  type Database,
  openDatabase,
  startConsole,
  tokens,
} from '../support/started-console.ts'

let database: Database
beforeAll(async () => {
  database = await openDatabase()
})
afterAll(() => database.end())

/** A real observer that counts what is under way, and can be held up. */
function watched() {
  const seen = { calls: 0, now: 0, most: 0 }
  const gate = deferred<void>()
  const real = createObserver(database.driver)
  const transactions: Observer['transactions'] = async (options) => {
    seen.calls += 1
    seen.now += 1
    seen.most = Math.max(seen.most, seen.now)
    try {
      await gate.promise
      return await real.transactions(options)
    } finally {
      seen.now -= 1
    }
  }
  return { seen, gate, observer: { ...real, transactions } }
}

test('the same question at the same time is asked once, and its answer serves for a second', async () => {
  const { seen, gate, observer } = watched()
  const { get } = await startConsole({ observer, auth })
  const ask = (): Promise<Response> => get('/api/transactions', bearer(tokens.view))
  const answers = Array.from({ length: 20 }, ask)
  await waitUntil('it is asked', () => (seen.calls > 0 ? true : undefined))
  gate.resolve()
  for (const answer of await Promise.all(answers)) expect(answer.status).toBe(200)
  expect((await ask()).status).toBe(200)
  expect(seen.calls).toBe(1)
})

test('different questions queue, two at a time, and beyond twenty are refused', async () => {
  const { seen, gate, observer } = watched()
  const { get } = await startConsole({ observer, auth })
  const answers = Array.from({ length: 30 }, (_, index) =>
    get(`/api/transactions?limit=${index + 1}`, bearer(tokens.view)),
  )
  let refused = 0
  for (const answer of answers) {
    void answer.then(({ status }) => {
      if (status === 503) refused += 1
    })
  }
  await waitUntil('what is too much is refused', () => (refused === 8 ? true : undefined))
  gate.resolve()
  const statuses = (await Promise.all(answers)).map(({ status }) => status)
  expect(statuses.filter((status) => status === 200)).toHaveLength(22)
  expect(seen.most).toBe(2)
})

test('a question that never ends is answered all the same, and the lock tree is still there', async () => {
  const { seen, observer } = watched()
  const { get } = await startConsole({ observer, auth })
  const stuck = get('/api/transactions', bearer(tokens.view))
  await waitUntil('it is asked', () => (seen.calls > 0 ? true : undefined))
  expect((await get('/api/locks', bearer(tokens.view))).status).toBe(200)
  const response = await stuck
  expect([response.status, await codeOf(response)]).toEqual([504, 'DATABASE_SLOW'])
})

test('the history is bounded in bytes, and what is kept can be looked at', async () => {
  const real = createObserver(database.driver)
  let size = 1
  const observer: Observer = {
    ...real,
    // Padding that does not compress.
    locks: async () => ({ ...(await real.locks()), padding: noise(size * 50_000) }),
  }
  const { get } = await startConsole(
    { observer, auth, history: { maxMegabytes: 1 } },
    { pollMs: 0 },
  )
  const points = async (): Promise<{ at: string }[]> => {
    const response = await get('/api/history', bearer(tokens.view))
    return ((await response.json()) as { points: { at: string }[] }).points
  }
  for (size = 1; size <= 10; size += 1) await get('/api/locks', bearer(tokens.view))
  const kept = await points()
  expect(kept.length).toBeGreaterThan(1)
  expect(kept.length).toBeLessThan(10)
  const at = encodeURIComponent(kept.at(-1)?.at ?? '')
  const tree = await get(`/api/history/tree?at=${at}`, bearer(tokens.view))
  expect(await tree.json()).toMatchObject({ at: kept.at(-1)?.at, roots: [] })
  expect((await get('/api/history/tree?at=2001', bearer(tokens.view))).status).toBe(404)
})

function noise(length: number): string {
  let text = ''
  let state = 1
  while (text.length < length) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    text += state.toString(36)
  }
  return text
}
