/** While a database cannot be reached, whoever waits for it is told so: a mistyped host looks like a program that hangs. */
import pg from 'pg'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast, lockKey } from '../../../src/index.ts'

beforeEach(() => {
  vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
})

function at(host: string): Holdfast<pg.PoolClient> {
  const pool = new pg.Pool({ connectionString: `postgres://u:s3cret@${host}/x` })
  onTestFinished(() => void pool.end())
  return createHoldfast(fromPg(pool))
}

const body = async (): Promise<never> => expect.unreachable()
const warned = (): readonly unknown[][] => vi.mocked(process.emitWarning).mock.calls

describe('a host that is wrong', () => {
  test.each([
    ['127.0.0.1:1', 'ECONNREFUSED'],
    ['nowhere.invalid', 'ENOTFOUND'],
  ])('%s: a warning after a second, and only one', async (host, code) => {
    const hf = at(host)
    const options = { retry: { budget: '3 s' } } as const
    const began = performance.now()
    const calls = [1, 2, 3].map((n) => hf.guard(lockKey('a', n), body, options))
    const ended = Promise.allSettled(calls)
    await vi.waitFor(() => expect(warned()).toHaveLength(1), { timeout: 3_000, interval: 20 })
    expect(performance.now() - began).toBeGreaterThan(900)
    for (const result of await ended) {
      expect(result).toMatchObject({ reason: { code: 'CONNECTION_UNAVAILABLE' } })
    }
    expect(warned()).toEqual([
      [
        `The database cannot be reached (${code}). Holdfast tries again for up to 3 s. Check host and port of the database URL, and that the server is running.`,
        { code: 'HOLDFAST_DATABASE_UNREACHABLE' },
      ],
    ])
  })

  test('nothing is said about what ends within a second', async () => {
    const guarding = at('127.0.0.1:1').guard(lockKey('a', 1), body, { retry: { budget: 500 } })
    await expect(guarding).rejects.toMatchObject({ code: 'CONNECTION_UNAVAILABLE' })
    expect(warned()).toEqual([])
  })
})
