import { waitUntil } from '@holdfast/testkit'
import { expect, test } from 'vitest'
import { eachSqlite } from '../support/each-sqlite.ts'
import { expireClaims, fill, openOutbox, outboxTable, rowsOf } from '../support/outbox.ts'

eachSqlite([...outboxTable(), 'CREATE TABLE sent (id INTEGER)'], (place) => {
  const sent = (): readonly number[] =>
    (
      place.open().prepare('SELECT id FROM sent ORDER BY id').all() as { readonly id: number }[]
    ).map(({ id }) => id)

  test('workers on several connections work on each row once, and stop', async () => {
    const all = await Promise.all([1, 2].map(() => openOutbox(place)))
    fill(place, 12)
    const worked: number[] = []
    const workers = await Promise.all(
      all.map(({ claims }) =>
        claims.run({ concurrency: 3, handler: async ({ id }) => void worked.push(id) }),
      ),
    )
    await Promise.all(workers.map((worker) => worker.drain()))
    expect(worked.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 12 }, (_, at) => at + 1))
    expect(rowsOf(place).every(({ state }) => state === 'done')).toBe(true)
    for (const { hf } of all) expect(await hf.close()).toEqual({ left: [] })
  })

  test('in a transaction of its own: work and completion are one, also if it fails first', async () => {
    const { claims } = await openOutbox(place, { backoff: { first: 1, most: 1 } })
    fill(place, 3)
    let failures = 0
    const worker = await claims.run({
      transactionHandler: async (tx, { id }) => {
        tx.prepare('INSERT INTO sent VALUES (?)').run(id)
        await new Promise(setImmediate)
        if (id === 2 && failures++ === 0) throw new Error('mine')
      },
    })
    await waitUntil('all are done', () =>
      rowsOf(place).every(({ state }) => state === 'done') ? true : undefined,
    )
    await worker.stop()
    expect(sent()).toEqual([1, 2, 3])
    expect(rowsOf(place)[1]).toMatchObject({ tries: 2 })
  })

  test('rows whose holder fell silent are recovered and worked on', async () => {
    const { claims } = await openOutbox(place)
    fill(place, 1)
    await claims.claim(1)
    expireClaims(place)
    const worker = await claims.run({ recoverEvery: 20, handler: async () => undefined })
    await waitUntil('it is done', () =>
      rowsOf(place).every(({ state }) => state === 'done') ? true : undefined,
    )
    await worker.stop()
    expect(rowsOf(place)[0]).toMatchObject({ tries: 2 })
  })

  test('a handler whose lease is taken away is told, and ends nothing', async () => {
    const { claims } = await openOutbox(place, { lease: 600 })
    fill(place, 1)
    let reason: unknown
    const worker = await claims.run({
      handler: async (_, { signal }) => {
        place.open().exec("UPDATE outbox SET token = 'somebody else'")
        await waitUntil('it is told', () => signal.aborted || undefined)
        reason = signal.reason
        throw signal.reason as Error
      },
    })
    await waitUntil('it has ended', () => reason)
    await worker.stop()
    expect(reason).toMatchObject({ code: 'CLAIM_LOST' })
    expect(rowsOf(place)[0]).toMatchObject({ state: 'busy', token: 'somebody else' })
  })

  test('listening for notifications is refused', async () => {
    const { claims } = await openOutbox(place)
    const run = claims.run({ handler: async () => undefined, listen: 'x' } as never)
    await expect(run).rejects.toMatchObject({ code: 'ENGINE_NOT_OFFERED' })
  })
})
