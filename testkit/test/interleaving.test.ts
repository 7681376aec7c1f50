import { expect, test } from 'vitest'
import { barrier, deferred, startPostgres, waitUntilBlocked, withClient } from '../src/index.ts'

test('a barrier releases everyone at once, round after round', async () => {
  const meet = barrier(3)
  const log: string[] = []
  const caller = async (name: string): Promise<void> => {
    for (const round of [1, 2]) {
      log.push(`${name} arrives ${round}`)
      await meet()
      log.push(`${name} leaves ${round}`)
    }
  }
  const two = [caller('a'), caller('b')]
  await Promise.resolve()
  expect(log).toEqual(['a arrives 1', 'b arrives 1'])
  await Promise.all([...two, caller('c')])
  const lastArrival = log.findLastIndex((line) => line.endsWith('arrives 1'))
  const firstLeave = log.findIndex((line) => line.endsWith('leaves 1'))
  expect(lastArrival).toBeLessThan(firstLeave)
  expect(() => barrier(0)).toThrow(RangeError)
})

test('a deferred is settled by someone else', async () => {
  const arrived = deferred<string>()
  const waiting = arrived.promise.then((what) => `got ${what}`)
  arrived.resolve('it')
  expect(await waiting).toBe('got it')
  const failed = deferred()
  failed.reject(new Error('no'))
  await expect(failed.promise).rejects.toThrow('no')
})

test('waitUntilBlocked names who is in the way, and gives up when nobody is', async () => {
  await using server = await startPostgres()
  await withClient(server.url(), async (alice) => {
    await withClient(server.url(), async (bob) => {
      const pidOf = async (client: typeof alice): Promise<number> => {
        const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
        return rows[0]?.pid ?? 0
      }
      const [alicePid, bobPid] = [await pidOf(alice), await pidOf(bob)]
      await alice.query('BEGIN')
      await alice.query('SELECT pg_advisory_xact_lock(1)')
      await expect(waitUntilBlocked(alice, bobPid, { limitMs: 50 })).rejects.toThrow(/in vain/)

      const waiting = bob.query('SELECT pg_advisory_xact_lock(1)')
      expect(await waitUntilBlocked(alice, bobPid)).toEqual([alicePid])
      await alice.query('COMMIT')
      await waiting

      const rowsOf = async (text: string, values: unknown[]): Promise<Record<string, unknown>[]> =>
        (await alice.query<Record<string, unknown>>(text, values)).rows
      await expect(waitUntilBlocked(rowsOf, bobPid, { limitMs: 50 })).rejects.toThrow(/in vain/)
    })
  })
})
