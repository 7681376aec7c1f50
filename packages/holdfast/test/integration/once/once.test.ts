import { barrier, deferred, waitUntil } from '@holdfast/testkit'
import type { PoolClient } from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { OnceAnswer } from '../../../src/entries/once.ts'
import { callerTransaction } from '../../support/pg-fixture.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'

const fixture = ledgerFixture('CREATE TABLE effect (key text NOT NULL, by text)')

async function effects(key: string): Promise<number> {
  const { rows } = await fixture.observer.query<{ count: number }>(
    'SELECT count(*)::int AS count FROM effect WHERE key = $1',
    [key],
  )
  return rows[0]?.count as number
}

const work =
  (key: string, by = '') =>
  async (tx: PoolClient): Promise<{ by: string; n: number }> => {
    await tx.query('INSERT INTO effect VALUES ($1, $2)', [key, by])
    return { by, n: 1 }
  }

/** Resolves when `count` backends wait for a lock of this database. */
async function untilWaiting(count: number): Promise<void> {
  await waitUntil(`${count} wait`, async () => {
    const { rows } = await fixture.observer.query(
      `SELECT pid FROM pg_stat_activity
       WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0`,
    )
    return rows.length >= count || undefined
  })
}

test('the body runs once, and everybody gets what it gave', async () => {
  const key = fresh()
  const first = await fixture.hf.once(key, work(key, 'first'))
  expect(first).toEqual({ ok: true, result: { by: 'first', n: 1 }, replayed: false })
  const again = await fixture.hf.once(key, work(key, 'second'))
  expect(again).toEqual({ ...first, replayed: true })
  expect(await effects(key)).toBe(1)
})

test('duplicates at the same moment: one effect, one answer', async () => {
  const key = fresh()
  const together = barrier(12)
  const answers = await Promise.all(
    Array.from({ length: 12 }, async (_, at) => {
      await together()
      return await fixture.hf.once(key, work(key, String(at)))
    }),
  )
  expect(await effects(key)).toBe(1)
  expect(new Set(answers.map(({ result }) => JSON.stringify(result))).size).toBe(1)
  expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1)
})

test('control: looked up and remembered without the key being unique, it runs more than once', async () => {
  const key = fresh()
  await fixture.observer.query('CREATE TABLE remembered (key text NOT NULL)')
  const together = barrier(4)
  await Promise.all(
    Array.from({ length: 4 }, () =>
      fixture.hf.transaction(async (tx) => {
        const { rows } = await tx.query('SELECT FROM remembered WHERE key = $1', [key])
        await together()
        if (rows.length > 0) return
        await work(key)(tx)
        await tx.query('INSERT INTO remembered VALUES ($1)', [key])
      }),
    ),
  )
  expect(await effects(key)).toBe(4)
})

describe("in the caller's transaction", () => {
  test('work and memory commit together', async () => {
    const key = fresh()
    const client = await callerTransaction(fixture)
    expect(await fixture.hf.once(client, key, work(key))).toMatchObject({ replayed: false })
    // The same transaction knows already.
    expect(await fixture.hf.once(client, key, work(key))).toMatchObject({ replayed: true })
    expect(await effects(key)).toBe(0)
    await client.query('COMMIT')
    expect(await effects(key)).toBe(1)
    expect(await fixture.hf.once(key, work(key))).toMatchObject({ replayed: true })
  })

  test('and roll back together: the next one does the work', async () => {
    const key = fresh()
    const client = await callerTransaction(fixture)
    await fixture.hf.once(client, key, work(key))
    await client.query('ROLLBACK')
    expect(await effects(key)).toBe(0)
    expect(await fixture.hf.once(key, work(key))).toMatchObject({ replayed: false })
    expect(await effects(key)).toBe(1)
  })

  test('a duplicate waits, and does the work itself if the first one rolls back', async () => {
    const key = fresh()
    const client = await callerTransaction(fixture)
    await fixture.hf.once(client, key, work(key, 'first'))
    const second = fixture.hf.once(key, work(key, 'second'))
    await untilWaiting(1)
    await client.query('ROLLBACK')
    expect(await second).toMatchObject({ result: { by: 'second' }, replayed: false })
    expect(await effects(key)).toBe(1)
  })

  test('a body that throws leaves nothing, and the transaction can go on', async () => {
    const key = fresh()
    const client = await callerTransaction(fixture)
    await client.query('INSERT INTO effect VALUES ($1)', [`${key}-before`])
    const failing = fixture.hf.once(client, key, async (tx) => {
      await work(key)(tx)
      await tx.query('SELECT 1 / 0')
    })
    await expect(failing).rejects.toMatchObject({ code: '22012' })
    await client.query('COMMIT')
    expect(await effects(`${key}-before`)).toBe(1)
    expect(await effects(key)).toBe(0)
    // Nothing is stuck: the next one does the work.
    expect(await fixture.hf.once(key, work(key))).toMatchObject({ replayed: false })
  })

  test('at REPEATABLE READ a snapshot older than the work of another is refused, not repeated', async () => {
    const key = fresh()
    const client = await callerTransaction(fixture, 'BEGIN ISOLATION LEVEL REPEATABLE READ')
    await client.query('SELECT count(*) FROM effect')
    await fixture.hf.once(key, work(key, 'first'))
    const stale = fixture.hf.once(client, key, work(key, 'second'))
    await expect(stale).rejects.toMatchObject({ code: '40001' })
    await client.query('ROLLBACK')
    expect(await effects(key)).toBe(1)
  })

  test('a handle outside a transaction is refused', async () => {
    const client = await fixture.pool.connect()
    try {
      const refused = fixture.hf.once(client, fresh(), work('none'))
      await expect(refused).rejects.toMatchObject({ code: 'ONCE_OUTSIDE_TRANSACTION' })
    } finally {
      client.release()
    }
  })

  test('without a handle inside a transaction of ours is refused', async () => {
    const nested = fixture.hf.transaction(async () => await fixture.hf.once(fresh(), work('none')))
    await expect(nested).rejects.toMatchObject({ code: 'TX_NESTED' })
  })
})

describe('wait: false', () => {
  test('says that another is at it, and changes nothing', async () => {
    const key = fresh()
    const [begun, end] = [deferred<void>(), deferred<void>()]
    const first = fixture.hf.once(key, async (tx) => {
      await work(key)(tx)
      begun.resolve()
      await end.promise
    })
    await begun.promise
    const second = await fixture.hf.once(key, work(key), { wait: false })
    expect(second).toEqual({ ok: false, reason: 'in-progress' })
    end.resolve()
    await first
    expect(await fixture.hf.once(key, work(key), { wait: false })).toMatchObject({ replayed: true })
    expect(await effects(key)).toBe(1)
  })

  test('after a crash nothing is in progress: no state is left behind', async () => {
    const key = fresh()
    const client = await fixture.pool.connect()
    client.on('error', () => undefined)
    await client.query('BEGIN')
    const pid = await client
      .query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
      .then(({ rows }) => rows[0]?.pid)
    await fixture.hf.once(client, key, work(key))
    await fixture.observer.query('SELECT pg_terminate_backend($1)', [pid])
    client.release(true)
    const next = await waitUntil('the lock is gone', async () => {
      const answer = await fixture.hf.once(key, work(key), { wait: false })
      return answer.ok ? answer : undefined
    })
    expect(next).toMatchObject({ replayed: false })
    expect(await effects(key)).toBe(1)
  })
})

describe('while another is at it', () => {
  /** A key whose first call goes on until the test ends, or `end` is called. */
  const busyKey = async (): Promise<{ readonly key: string; end(): Promise<void> }> => {
    const key = fresh()
    const [begun, ended] = [deferred<void>(), deferred<void>()]
    const first = fixture.hf.once(key, async () => {
      begun.resolve()
      await ended.promise
      return 'first'
    })
    const end = async (): Promise<void> => {
      ended.resolve()
      await first
    }
    onTestFinished(end)
    await begun.promise
    return { key, end }
  }

  test.each(['nowait', 0, '0 ms', '0s', '0.0 min', false] as const)(
    'wait: %j says so',
    async (wait) => {
      const { key } = await busyKey()
      expect(await fixture.hf.once(key, work(key), { wait })).toEqual({
        ok: false,
        reason: 'in-progress',
      })
    },
  )

  test.each(['nowait', 0, '0 ms'] as const)(
    'wait: true waits, also if calls do not by default: %j',
    async (wait) => {
      const { key, end } = await busyKey()
      const waiting = fixture.create({ wait }).once(key, work(key), { wait: true })
      await untilWaiting(1)
      await end()
      expect(await waiting).toEqual({ ok: true, result: 'first', replayed: true })
    },
  )
})

describe('payload', () => {
  test('another one under the same key is refused; the same, in any order of keys, is not', async () => {
    const key = fresh()
    const pay = async (payload: unknown): Promise<OnceAnswer<unknown, { payload: unknown }>> =>
      await fixture.hf.once(key, work(key), { payload })
    expect(await pay({ amount: 1, to: { a: 1, b: 2 } })).toMatchObject({ replayed: false })
    expect(await pay({ to: { b: 2, a: 1 }, amount: 1 })).toMatchObject({ replayed: true })
    expect(await pay({ amount: 2, to: { a: 1, b: 2 } })).toEqual({ ok: false, reason: 'mismatch' })
    expect(await effects(key)).toBe(1)
  })

  test.each([
    ['text', 'a', 'b'],
    ['bytes', new Uint8Array([1]), new Uint8Array([2])],
    ['null and nothing', null, ''],
    ['a buffer', new Uint8Array([1]).buffer, new Uint8Array([2]).buffer],
    ['a view', new DataView(new ArrayBuffer(1)), new DataView(new ArrayBuffer(2))],
    ['bytes in data', { file: new Uint8Array([1]) }, { file: new Uint8Array([2]) }],
  ])('%s', async (_, one, other) => {
    const key = fresh()
    await fixture.hf.once(key, work(key), { payload: one })
    expect(await fixture.hf.once(key, work(key), { payload: one })).toMatchObject({ ok: true })
    expect(await fixture.hf.once(key, work(key), { payload: other })).toMatchObject({ ok: false })
  })
})

test.each([
  ['a Map', new Map([['a', 1]])],
  ['a form', new FormData()],
  ['a function', () => 1],
  ['a number that is none', { amount: Number.NaN }],
])('%s is no payload: it is refused, and nothing is done', async (_, payload) => {
  const key = fresh()
  const refused = fixture.hf.once(key, work(key), { payload })
  await expect(refused).rejects.toMatchObject({
    code: 'OPTION_INVALID',
    details: { option: 'payload' },
  })
  expect(await effects(key)).toBe(0)
})

describe('results', () => {
  test.each([
    ['nothing', undefined, undefined],
    ['null', null, null],
    ['text with quotes, NUL and half a pair', 'a"\0\ud800', 'a"\0\ud800'],
    ['a date, as JSON has it', new Date(0), '1970-01-01T00:00:00.000Z'],
    ['a list', [1, { a: [] }], [1, { a: [] }]],
  ])('%s', async (_, given, stored) => {
    const key = fresh()
    const first = await fixture.hf.once(key, async () => given)
    expect(first.result).toEqual(stored)
    expect((await fixture.hf.once(key, async () => 'other')).result).toEqual(stored)
  })

  test('what JSON cannot hold is refused, and nothing stays', async () => {
    const key = fresh()
    const refused = fixture.hf.once(key, async (tx) => {
      await work(key)(tx)
      return { amount: 1n }
    })
    await expect(refused).rejects.toMatchObject({ code: 'ONCE_RESULT_INVALID' })
    expect(await effects(key)).toBe(0)
  })
})

describe('keys', () => {
  test('are unique within a scope', async () => {
    const key = fresh()
    for (const scope of ['ann', 'bob']) {
      expect(await fixture.hf.once(key, work(key), { scope })).toMatchObject({ replayed: false })
    }
    expect(await effects(key)).toBe(2)
    expect(await fixture.hf.once(key, work(key), { scope: 'ann' })).toMatchObject({
      replayed: true,
    })
  })

  test.each([
    ['empty', ''],
    ['with NUL', 'a\0'],
    ['with half a pair', '\ud800'],
    ['too long', 'x'.repeat(513)],
  ])('%s is refused', async (_, key) => {
    await expect(fixture.hf.once(key, work('none'))).rejects.toMatchObject({
      code: 'ONCE_KEY_INVALID',
    })
  })
})

describe('retention', () => {
  const age = async (key: string): Promise<void> => {
    await fixture.observer.query(
      `UPDATE holdfast.once SET expires_at = clock_timestamp() - interval '1 s' WHERE key = $1`,
      [key],
    )
  }

  test('what is past its time is forgotten, in batches, and the rest is not', async () => {
    const [old, kept] = [[fresh(), fresh(), fresh()], fresh()]
    for (const key of [...old, kept]) await fixture.hf.once(key, work(key))
    for (const key of old) await age(key)
    expect(await fixture.hf.once.forget({ limit: 2 })).toBe(2)
    expect(await fixture.hf.once.forget()).toBe(1)
    expect(await fixture.hf.once.forget()).toBe(0)
    expect(await fixture.hf.once(kept, work(kept))).toMatchObject({ replayed: true })
    await expect(fixture.hf.once.forget({ limit: 0 })).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
  })

  test('past its time it counts no more, even if nobody has swept', async () => {
    const key = fresh()
    await fixture.hf.once(key, work(key, 'first'))
    await age(key)
    expect(await fixture.hf.once(key, work(key, 'second'))).toMatchObject({ replayed: false })
    expect(await fixture.hf.once(key, work(key))).toMatchObject({ result: { by: 'second' } })
  })
})

describe('a key inside of its own body', () => {
  const ofItself = { code: 'OPTION_INVALID', details: { option: 'key' } }

  test('is told at once, and the body runs once', async () => {
    const key = fresh()
    let runs = 0
    const itself = fixture.hf.once(key, async (tx) => {
      runs += 1
      await work(key)(tx)
      await fixture.hf.once(tx, key, async () => 'inner')
    })
    await expect(itself).rejects.toMatchObject(ofItself)
    expect(runs).toBe(1)
    expect(await effects(key)).toBe(0)
  })

  test('also with another key between, and in a transaction of the caller', async () => {
    const [key, other] = [fresh(), fresh()]
    const tx = await callerTransaction(fixture)
    const itself = fixture.hf.once(tx, key, async () => {
      await fixture.hf.once(tx, other, async () => {
        await fixture.hf.once(tx, key, async () => 'inner')
      })
    })
    await expect(itself).rejects.toMatchObject(ofItself)
  })

  test('control: with another scope it is another key, and after the body it is free', async () => {
    const key = fresh()
    await fixture.hf.transaction(async (tx) => {
      const answer = await fixture.hf.once(tx, key, async () => {
        return (await fixture.hf.once(tx, key, async () => 'inner', { scope: 'other' })).result
      })
      expect(answer.result).toBe('inner')
      const again = await fixture.hf.once(tx, key, async () => 'again')
      expect(again).toMatchObject({ result: 'inner', replayed: true })
    })
  })
})

test('a payload that is undefined is refused: nothing would be compared', async () => {
  const refused = { code: 'OPTION_INVALID', details: { option: 'payload' } }
  const payload = undefined
  const alone = fixture.hf.once(fresh(), async () => 1, { payload })
  await expect(alone).rejects.toMatchObject(refused)
  await fixture.hf.transaction(async (tx) => {
    const joined = fixture.hf.once(tx, fresh(), async () => 1, { payload })
    await expect(joined).rejects.toMatchObject(refused)
  })
})
