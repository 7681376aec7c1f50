import { deferred } from '@holdfast/testkit'
import { expect, test } from 'vitest'
import { lockKey } from '../../../src/index.ts'
import { ledgerFixture } from '../../support/ledger-fixture.ts'
import { callerTransaction } from '../../support/pg-fixture.ts'

const fixture = ledgerFixture('CREATE TABLE seat (id int PRIMARY KEY); INSERT INTO seat VALUES (1)')
const key = lockKey('seat', 1)

async function buySeat(call: () => Promise<unknown>): Promise<unknown> {
  return await call()
}

async function stackOf(call: () => Promise<unknown>): Promise<readonly string[]> {
  const error = (await buySeat(call).catch((thrown: unknown) => thrown)) as Error & { code: string }
  expect(error.code).toBeTypeOf('string')
  const [first = '', ...lines] = (error.stack ?? '').split('\n')
  expect(first).toContain(error.code)
  return lines
}

test.each<readonly [code: string, call: () => Promise<unknown>]>([
  ['LOCK_TIMEOUT', async () => await fixture.hf.guard(key, async () => 'in', { wait: 20 })],
  [
    'LOCK_TIMEOUT in a transaction of the caller',
    async () => {
      const tx = await callerTransaction(fixture)
      await fixture.hf.locks.acquire(tx, key, { wait: 20 })
    },
  ],
  [
    'ROWS_BUSY',
    async () => {
      const tx = await callerTransaction(fixture)
      await fixture.hf.rows.lock(tx, 'seat', [1], { wait: 'nowait' })
    },
  ],
  ['OPTION_INVALID', async () => await fixture.hf.once('some', async () => 1, { kep: 1 } as never)],
  ['LEDGER_AMOUNT_INVALID', async () => await credits().spend('ada', -1, { operationId: 'x' })],
])('U8: the stack of %s begins with the caller', async (_, call) => {
  const [inside, leave] = [deferred<void>(), deferred<void>()]
  const holder = fixture.hf.guard(key, async (tx) => {
    await tx.query('SELECT FROM seat WHERE id = 1 FOR UPDATE')
    inside.resolve()
    await leave.promise
  })
  await inside.promise
  const lines = await stackOf(call)
  leave.resolve()
  await holder
  expect(lines[0]).toContain('caller-frames.test.ts')
  expect(lines.slice(0, 4).join('\n')).toContain('buySeat')
  // Ours are still there, behind it.
  expect(lines.some((line) => line.includes('/src/core/errors.ts'))).toBe(true)
})

function credits(): ReturnType<typeof fixture.hf.credits> {
  return fixture.hf.credits({ name: 'caller-frames' })
}

test('U8: an error that a body lets out stays where it was made', async () => {
  const tx = await callerTransaction(fixture)
  await fixture.hf.locks.acquire(tx, key)
  const inner = async (): Promise<void> => {
    const other = await callerTransaction(fixture)
    await fixture.hf.locks.acquire(other, key, { wait: 'nowait' })
  }
  const [first] = await stackOf(
    async () => await fixture.hf.transaction(async () => await inner(), { retry: false }),
  )
  expect(first).toMatch(/inner.*caller-frames\.test\.ts/)
})
