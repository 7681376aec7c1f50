import { waitUntil } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import { lockKey } from '../../../src/core/locks/lock-key.ts'
import { createLocks } from '../../../src/entries/locks.ts'
import { rejection, type Setting } from './setting.ts'

/** T1: what a body has left open on its connection keeps neither the call from ending nor the lock. */
export function leftOpen<Tx>(at: Setting<Tx>): void {
  const insert = (id: string): string => `INSERT INTO account VALUES ('${id}', 1)`
  const own = new Error('mine')

  describe.each([
    ['rows that were not all read', 'leaveOpen'],
    ['a COPY that was not finished', 'leaveCopying'],
  ] as const)('%s', (what, leave) => {
    test.each([
      ['returns', {}],
      ['returns', { deadline: '300 ms' }],
      ['throws', {}],
      ['throws', { deadline: '300 ms' }],
    ] as const)('T1: the body %s, with %o', async (how, options) => {
      const harness = await at.another()
      const { [leave]: left } = harness
      if (left === undefined) return
      const id = `${what} ${how} ${JSON.stringify(options)}`
      const key = lockKey('left open', id)
      const locks = createLocks(harness.driver, { watch: false })
      const error = await rejection(
        locks.guard(
          key,
          async (tx) => {
            await harness.run(tx, insert(id))
            await left(tx)
            if (how === 'throws') throw own
          },
          options,
        ),
      )
      if (how === 'throws') expect(error).toBe(own)
      else expect(error.code).toBe('TX_UNAWAITED')
      await waitUntil('the lock is free', async () => {
        const { rows } = await at.observer.query<{ free: boolean }>(
          'SELECT pg_try_advisory_xact_lock($1::int8) AS free',
          [String(key.lock.id)],
        )
        return rows[0]?.free === true || undefined
      })
      expect(await at.balance(id)).toBeUndefined()
      // And the client goes on: none of its connections is left inside of a transaction.
      const many = Array.from({ length: 8 }, async (_, n) => {
        await locks.guard(lockKey('left open', `${id} ${n}`), async (tx) => {
          await harness.run(tx, insert(`${id} ${n}`))
        })
      })
      await Promise.all(many)
      expect(await at.balance(`${id} 7`)).toBe(1)
    })
  })
}
