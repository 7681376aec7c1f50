/** R1: a unique key belongs to its queue and scope, whoever else shares the bucket. */
import { barrier, waitUntilBlocked } from '@holdfast/testkit'
import { afterEach, describe, expect, test } from 'vitest'
import { ledgerFixture } from '../../support/ledger-fixture.ts'
import { callerTransaction, pidOf } from '../../support/pg-fixture.ts'

const fixture = ledgerFixture()
const tenants = Array.from({ length: 500 }, (_, at) => `tenant-${at}`)
const queue = 'digests'

const oldIndex = `CREATE UNIQUE INDEX work_unique ON holdfast.work (bucket, queue, unique_key)
  WHERE unique_key IS NOT NULL AND status IN ('pending', 'claimed')`

afterEach(async () => void (await fixture.observer.query('DELETE FROM holdfast.work')))

async function everyTenant(): Promise<{ added: number; ids: number }> {
  const work = fixture.hf.work({ queue })
  const answers = await Promise.all(
    tenants.map((scope) => work.enqueue({ payload: scope, scope, uniqueKey: 'daily-digest' })),
  )
  return {
    added: answers.filter(({ added }) => added).length,
    ids: new Set(answers.map(({ id }) => id)).size,
  }
}

describe('R1: 500 tenants, same queue, same unique key', () => {
  test('500 jobs', async () => {
    expect(await everyTenant()).toEqual({ added: 500, ids: 500 })
    const again = await everyTenant()
    expect(again).toEqual({ added: 0, ids: 500 })
  })

  test('in one call', async () => {
    const work = fixture.hf.work({ queue })
    const asked = tenants.map((scope) => ({ payload: 1, scope, uniqueKey: 'daily-digest' }))
    const answers = await work.enqueue([...asked, ...asked])
    expect(answers.filter(({ added }) => added)).toHaveLength(500)
    expect(answers.slice(500).map(({ id }) => id)).toEqual(
      answers.slice(0, 500).map(({ id }) => id),
    )
  })

  test('control: with the old index there are fewer', async () => {
    await fixture.observer.query(`DROP INDEX holdfast.work_unique_in_scope; ${oldIndex}`)
    try {
      const { added } = await everyTenant()
      expect(added).toBeGreaterThan(400)
      expect(added).toBeLessThan(500)
    } finally {
      await fixture.observer.query(`DELETE FROM holdfast.work; DROP INDEX holdfast.work_unique;
        CREATE UNIQUE INDEX work_unique_in_scope ON holdfast.work (bucket, queue, scope, unique_key)
        WHERE unique_key IS NOT NULL AND status IN ('pending', 'claimed')`)
    }
  })
})

test('R1: while one scope adds a key, another scope with the same bucket does not wait for it', async () => {
  const work = fixture.hf.work({ queue })
  const first = await callerTransaction(fixture)
  await work.enqueue(first, { payload: 1, scope: 'tenant-80', uniqueKey: 'k' })
  // Shares the bucket with tenant-80.
  expect(await work.enqueue({ payload: 2, scope: 'tenant-88', uniqueKey: 'k' })).toMatchObject({
    added: true,
  })
  // The same scope waits.
  const second = await callerTransaction(fixture)
  const pid = await pidOf(second)
  const twin = work.enqueue(second, { payload: 3, scope: 'tenant-80', uniqueKey: 'k' })
  await waitUntilBlocked(fixture.observer, pid)
  await first.query('COMMIT')
  expect(await twin).toMatchObject({ added: false })
})

test('R1: with both indexes, as while the migration runs, many that add one key at once are answered', async () => {
  await fixture.observer.query(oldIndex)
  try {
    const work = fixture.hf.work({ queue })
    for (let round = 0; round < 20; round += 1) {
      const ready = barrier(8)
      const answers = await Promise.all(
        Array.from({ length: 8 }, async () => {
          await ready()
          return await work.enqueue({ payload: 1, scope: 'tenant-80', uniqueKey: `k${round}` })
        }),
      )
      expect(answers.filter(({ added }) => added)).toHaveLength(1)
      expect(new Set(answers.map(({ id }) => id)).size).toBe(1)
    }
    // As before the migration, and no error, nor a call that never ends.
    const other = await work.enqueue({ payload: 2, scope: 'tenant-88', uniqueKey: 'k0' })
    expect(other).toMatchObject({ added: false })
  } finally {
    await fixture.observer.query('DROP INDEX holdfast.work_unique')
  }
})
