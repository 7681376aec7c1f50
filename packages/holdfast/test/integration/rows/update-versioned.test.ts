/** Changes that only happen to the version they were decided on. */
import { barrier, waitUntilBlocked } from '@holdfast/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { errorOf, openRoom, type Room } from './open-room.ts'
import { named } from '../../support/in-time.ts'

let room: Room

interface Doc {
  id: number
  body: string
  version: number
}

beforeAll(async () => {
  room = await openRoom()
  await room.sql(
    `CREATE TABLE docs (id int PRIMARY KEY, body text, version int NOT NULL DEFAULT 1)`,
  )
})
beforeEach(async () => {
  await room.sql('TRUNCATE docs')
  await room.sql(`INSERT INTO docs SELECT i, 'body ' || i FROM generate_series(1, 5) AS i`)
})
afterEach(async () => room.tidy())
afterAll(async () => room.close())

const doc = async (id: number): Promise<Doc> =>
  (
    await room.sql<Doc & { [key: string]: unknown }>('SELECT * FROM docs WHERE id = $1', [id])
  )[0] as Doc

describe('updateVersioned', () => {
  test('changes the row, counts the version up and returns the row', async () => {
    const session = await room.begin()
    const set = { body: 'new' }
    const changed = await room.rows.updateVersioned<Doc>(session.client, 'docs', 1, {
      version: 1,
      set,
    })
    expect(changed).toEqual({ id: 1, body: 'new', version: 2 })
    const columns = await room.rows.updateVersioned(session.client, 'docs', 1, {
      version: 2n,
      set: {},
      columns: ['version'],
    })
    expect(columns).toEqual({ version: 3 })
    await session.commit()
    expect(await doc(1)).toEqual({ id: 1, body: 'new', version: 3 })
    expect(await doc(2)).toEqual({ id: 2, body: 'body 2', version: 1 })
  })

  test('refuses a version that is past, says which it found, and the transaction goes on', async () => {
    await room.sql('UPDATE docs SET version = 7 WHERE id = 1')
    const { client } = await room.begin()
    const update = { version: 1, set: { body: 'new' } }
    await expect(room.rows.updateVersioned(client, 'docs', 1, update)).rejects.toMatchObject({
      code: 'ROWS_VERSION_CONFLICT',
      name: 'ContentionError',
      retryable: true,
      details: { subject: 'docs', reason: 'changed', foundVersion: '7' },
    })
    await expect(room.rows.updateVersioned(client, 'docs', 99, update)).rejects.toMatchObject({
      code: 'ROWS_VERSION_CONFLICT',
      details: { subject: 'docs', reason: 'missing' },
    })
    const changed = await room.rows.updateVersioned(client, 'docs', 1, { ...update, version: 7 })
    expect(changed).toMatchObject({ version: 8 })
  })

  test.each([
    ['changed', `UPDATE docs SET body = 'theirs', version = version + 1 WHERE id = 1`, '2'],
    ['missing', 'DELETE FROM docs WHERE id = 1', undefined],
  ])('that has to wait sees the row as %s after the wait', async (reason, other, foundVersion) => {
    const [first, second] = [await room.begin(), await room.begin()]
    await first.sql(other)
    const update = { version: 1, set: { body: 'ours' } }
    const failing = errorOf(room.rows.updateVersioned(second.client, 'docs', 1, update))
    await waitUntilBlocked(room.observer, second.pid)
    await first.commit()
    expect(await failing).toMatchObject({
      code: 'ROWS_VERSION_CONFLICT',
      details: { reason, ...(foundVersion === undefined ? {} : { foundVersion }) },
    })
    await second.commit()
    expect(await doc(1)).toEqual(
      reason === 'changed' ? { id: 1, body: 'theirs', version: 2 } : undefined,
    )
  })

  test('control: without the version the other change is overwritten', async () => {
    const [first, second] = [await room.begin(), await room.begin()]
    const change = `UPDATE docs SET body = $1, version = version + 1 WHERE id = 1`
    await first.sql(change, ['theirs'])
    const changing = second.sql(change, ['ours'])
    await waitUntilBlocked(room.observer, second.pid)
    await first.commit()
    await changing
    await second.commit()
    expect((await doc(1)).body).toBe('ours')
  })

  test("that waits too long for the caller's lock_timeout names the holder", async () => {
    const holder = await room.begin()
    await room.rows.lock(holder.client, 'docs', [1])
    const session = await room.begin()
    await session.sql('SET LOCAL lock_timeout = 50')
    const update = { version: 1, set: {} }
    const error = await errorOf(room.rows.updateVersioned(session.client, 'docs', 1, update))
    expect(named(error)).toMatchObject({
      code: 'ROWS_TIMEOUT',
      blockers: [{ pid: holder.pid }],
    })
  })

  test('takes values of every type', async () => {
    await room.sql(`CREATE TYPE mood AS ENUM ('sad', 'happy')`)
    await room.sql(`CREATE TABLE "The ""types""" (
      "Tenant" uuid, "Id" int8, "Version" int8 NOT NULL, big int8, exact numeric, note text, doc jsonb, tags text[],
      raw bytea, at timestamptz, day date, mood mood, flag boolean, gone text, "user" text,
      PRIMARY KEY ("Tenant", "Id"))`)
    const tenant = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'
    const version = 9007199254740993n
    await room.sql(
      `INSERT INTO "The ""types""" ("Tenant", "Id", "Version", gone) VALUES ($1, 1, $2, 'x')`,
      [tenant, String(version)],
    )
    const { client } = await room.begin()
    const row = await room.rows.updateVersioned(
      client,
      { schema: 'public', table: 'The "types"' },
      { Id: 1, Tenant: tenant.toUpperCase() },
      {
        keyColumns: ['Tenant', 'Id'],
        versionColumn: 'Version',
        version,
        set: {
          big: 9223372036854775807n,
          exact: '0.10',
          note: `it's "so" ☃`,
          doc: { list: [1, null, { deep: 'x' }], big: 9007199254740993n },
          tags: ['a', 'b"c'],
          raw: Buffer.from([0, 255]),
          at: new Date('2026-01-02T03:04:05.678Z'),
          day: '2026-02-28',
          mood: 'happy',
          flag: false,
          gone: null,
          user: '$1',
        },
      },
    )
    expect(row).toMatchObject({
      Tenant: tenant,
      Id: '1',
      Version: String(version + 1n),
      big: '9223372036854775807',
      exact: '0.10',
      note: `it's "so" ☃`,
      doc: { list: [1, null, { deep: 'x' }] },
      tags: ['a', 'b"c'],
      raw: Buffer.from([0, 255]),
      at: new Date('2026-01-02T03:04:05.678Z'),
      mood: 'happy',
      flag: false,
      gone: null,
      user: '$1',
    })
    const { rows } = await client.query(`SELECT doc->>'big' AS big FROM "The ""types"""`)
    expect(rows).toEqual([{ big: '9007199254740993' }])
  })

  test.each([
    ['set', { version: 1, set: { version: 5 } }],
    ['set', { version: 1, set: { body: undefined } }],
    ['set', { version: 1, set: { body: NaN } }],
    ['set', { version: 1, set: { body: { deep: Infinity } } }],
    ['set', { version: 1, set: { body: new Date('never') } }],
    ['version', { set: { body: 'x' } } as never],
    ['version', { version: null as never, set: { body: 'x' } }],
    ['versionColumn', { version: 1, set: {}, versionColumn: 'id' }],
    ['identifier', { version: 1, set: { '': 1 } }],
  ])('refuses what would go wrong without a word: %s', async (option, update) => {
    const { client } = await room.begin()
    await expect(room.rows.updateVersioned(client, 'docs', 1, update)).rejects.toMatchObject({
      code: 'OPTION_INVALID',
      details: { option },
    })
  })

  test('refuses keys that mean several rows', async () => {
    const { client } = await room.begin()
    const update = { version: 1, set: {}, keyColumns: ['kind'] }
    await room.sql('DROP TABLE IF EXISTS kinds')
    await room.sql('CREATE TABLE kinds (kind int, version int)')
    await room.sql('INSERT INTO kinds VALUES (1, 1), (1, 1)')
    await expect(room.rows.updateVersioned(client, 'kinds', 1, update)).rejects.toMatchObject({
      code: 'ROWS_KEY_INVALID',
    })
  })
})

describe('optimistic', () => {
  const append = async (
    tx: never,
    id: number,
    text: string,
    meet: () => Promise<void>,
  ): Promise<void> => {
    const { query } = tx as { query(text: string, values: unknown[]): Promise<{ rows: Doc[] }> }
    const { rows } = await query.call(tx, 'SELECT * FROM docs WHERE id = $1', [id])
    const read = rows[0] as Doc
    await meet()
    const set = { body: read.body + text }
    await room.rows.updateVersioned(tx, 'docs', id, { version: read.version, set })
  }

  test('runs the whole body again for the one that lost', async () => {
    const bothHaveRead = barrier(2)
    let runs = 0
    const one = (text: string): Promise<void> =>
      room.rows.optimistic(async (tx, { attempt }) => {
        runs += 1
        await append(tx as never, 1, text, attempt === 1 ? bothHaveRead : async () => undefined)
      })
    await Promise.all([one('+a'), one('+b')])
    const { body, version } = await doc(1)
    expect(['body 1+a+b', 'body 1+b+a']).toContain(body)
    expect(version).toBe(3)
    expect(runs).toBe(3)
  })

  test('control: tx.run alone does not, and one of the two is refused', async () => {
    const bothHaveRead = barrier(2)
    const one = (text: string): Promise<void> =>
      room.rows.optimistic((tx) => append(tx as never, 1, text, bothHaveRead), { retry: false })
    const outcomes = await Promise.allSettled([one('+a'), one('+b')])
    expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
    expect((await doc(1)).version).toBe(2)
  })

  test('gives up when its attempts are spent', async () => {
    const reasons: string[] = []
    const spoilt = room.rows.optimistic(
      (tx) =>
        append(tx as never, 1, '+a', async () => {
          await room.sql('UPDATE docs SET version = version + 1 WHERE id = 1')
        }),
      { retry: { attempts: 3, baseMs: 1 }, onRetry: ({ reason }) => reasons.push(reason) },
    )
    await expect(spoilt).rejects.toMatchObject({ code: 'ROWS_VERSION_CONFLICT' })
    expect(reasons).toEqual(['ROWS_VERSION_CONFLICT', 'ROWS_VERSION_CONFLICT'])
    expect(await doc(1)).toEqual({ id: 1, body: 'body 1', version: 4 })
  })

  test('repeats what tx.run repeats', async () => {
    const runs: number[] = []
    await room.rows.optimistic(
      async (tx, { attempt }) => {
        runs.push(attempt)
        await tx.query('SELECT * FROM docs')
        if (attempt === 1) await room.sql('UPDATE docs SET version = 5 WHERE id = 1')
        await room.rows.lock(tx, 'docs', [1])
      },
      { isolation: 'repeatable read' },
    )
    expect(runs).toEqual([1, 2])
  })
})
