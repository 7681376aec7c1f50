/** Read without a lock, work slowly with nothing held, then write only to what was read. */
import { barrier } from '@holdfast/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { runTransaction } from '../../../src/tx/run.ts'
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
  await room.sql(`INSERT INTO docs VALUES (1, 'one'), (2, 'two')`)
})
afterEach(async () => room.tidy())
afterAll(async () => room.close())

const doc = async (id: number): Promise<unknown> =>
  (await room.sql('SELECT * FROM docs WHERE id = $1', [id]))[0]

type Client = Parameters<Room['rows']['lock']>[0]
const save = async (tx: Client, row: Doc, body: string): Promise<string> => {
  await tx.query('UPDATE docs SET body = $2 WHERE id = $1', [row.id, body])
  return `saved ${body}`
}

/** Sessions on this database, other than the observer's, that hold something. */
const holding = (): Promise<unknown[]> =>
  room.sql(
    `SELECT a.pid, a.state, l.locktype, l.mode FROM pg_stat_activity AS a LEFT JOIN pg_locks AS l USING (pid)
     WHERE a.datname = current_database() AND a.application_name <> 'observer'
     AND a.backend_type = 'client backend' AND (a.xact_start IS NOT NULL OR l.locktype IS NOT NULL)`,
  )

describe('the row', () => {
  test('is read, worked on, locked, checked and written, and its version counted up', async () => {
    const seen: unknown[] = []
    const written = await room.rows.withVersionCheck<Doc, string, string>('docs', 1, {
      work: async (row, { attempt }) => {
        seen.push(row, attempt)
        return row.body.toUpperCase()
      },
      write: async (tx, row, result) => {
        const { rows } = await tx.query('SELECT FROM docs WHERE id = 1 FOR UPDATE NOWAIT')
        expect(rows).toHaveLength(1)
        const others = await room.sql('SELECT id FROM docs FOR NO KEY UPDATE SKIP LOCKED')
        expect(others).toEqual([{ id: 2 }])
        seen.push(row)
        return save(tx, row, result)
      },
    })
    expect(written).toBe('saved ONE')
    const asRead = { id: 1, body: 'one', version: 1 }
    expect(seen).toEqual([asRead, 1, asRead])
    expect(await doc(1)).toEqual({ id: 1, body: 'ONE', version: 2 })
  })

  test('is not held during the work: no transaction, no lock', async () => {
    await room.rows.withVersionCheck<Doc>('docs', 1, {
      work: async () => {
        expect(await holding()).toEqual([])
      },
      write: async (_, row) => {
        // The control: the same look finds the transaction that writes.
        expect(await holding()).not.toEqual([])
        return row
      },
    })
  })

  test.each([
    ['changed', `UPDATE docs SET body = 'theirs', version = version + 1`, { foundVersion: '2' }],
    ['missing', 'DELETE FROM docs', {}],
  ])('that is %s during the work is not written', async (reason, other, details) => {
    let writes = 0
    const checked = room.rows.withVersionCheck<Doc>('docs', 1, {
      work: async () => {
        await room.sql(`${other} WHERE id = 1`)
      },
      write: async () => {
        writes += 1
      },
    })
    expect(await errorOf(checked)).toMatchObject({
      code: 'ROWS_VERSION_CONFLICT',
      details: { subject: 'docs', reason, ...details },
    })
    expect(writes).toBe(0)
  })

  test('control: without the check the other change is overwritten', async () => {
    const [read] = await room.sql<{ id: number; body: string; version: number }>(
      'SELECT * FROM docs WHERE id = 1',
    )
    await room.sql(`UPDATE docs SET body = 'theirs', version = version + 1 WHERE id = 1`)
    await runTransaction(room.driver, async ({ native }) => save(native, read as Doc, 'ours'))
    expect(await doc(1)).toEqual({ id: 1, body: 'ours', version: 2 })
  })

  test('must be there in the first place', async () => {
    const work = async (): Promise<never> => expect.unreachable()
    const checked = room.rows.withVersionCheck('docs', 99, { work, write: work })
    expect(await errorOf(checked)).toMatchObject({
      code: 'ROWS_MISSING',
      details: { missing: 1, skipped: 0 },
    })
  })
})

describe('a conflict', () => {
  test('is repeated with the row as it is then, if attempts allow', async () => {
    const seen: string[] = []
    const retries: unknown[] = []
    await room.rows.withVersionCheck<Doc, string>('docs', 1, {
      attempts: 3,
      onRetry: ({ attempt, reason }) => retries.push([attempt, reason]),
      work: async (row, { attempt }) => {
        seen.push(row.body)
        if (attempt < 3) {
          await room.sql(`UPDATE docs SET body = $1, version = version + 1 WHERE id = 1`, [
            `change ${attempt}`,
          ])
        }
        return `${row.body}!`
      },
      write: save,
    })
    expect(seen).toEqual(['one', 'change 1', 'change 2'])
    expect(retries).toEqual([
      [1, 'ROWS_VERSION_CONFLICT'],
      [2, 'ROWS_VERSION_CONFLICT'],
    ])
    expect(await doc(1)).toEqual({ id: 1, body: 'change 2!', version: 4 })
  })

  test('ends the repeating when the attempts are spent', async () => {
    let works = 0
    const checked = room.rows.withVersionCheck('docs', 1, {
      attempts: 2,
      work: async () => {
        works += 1
        await room.sql(`UPDATE docs SET version = version + 1 WHERE id = 1`)
      },
      write: async () => expect.unreachable(),
    })
    expect(await errorOf(checked)).toMatchObject({ code: 'ROWS_VERSION_CONFLICT' })
    expect(works).toBe(2)
  })

  const race = async (countVersion: boolean): Promise<unknown[]> => {
    const bothHaveRead = barrier(2)
    const outcomes = await Promise.allSettled(
      ['a', 'b'].map((name) =>
        room.rows.withVersionCheck<Doc, string, string>('docs', 1, {
          countVersion,
          work: async (row) => {
            await bothHaveRead()
            return `${row.body}+${name}`
          },
          write: save,
        }),
      ),
    )
    return outcomes.map((outcome) =>
      outcome.status === 'fulfilled' ? 'written' : (outcome.reason as { code: string }).code,
    )
  }

  test('of two that read the same version, one writes, though the writing leaves the version alone', async () => {
    expect(new Set(await race(true))).toEqual(new Set(['ROWS_VERSION_CONFLICT', 'written']))
    expect(await doc(1)).toMatchObject({ version: 2 })
  })

  test('control: if nobody counts the version, both write and one is lost', async () => {
    expect(await race(false)).toEqual(['written', 'written'])
    expect(await doc(1)).toMatchObject({ version: 1 })
  })
})

test('a write that counts the version itself is not counted twice', async () => {
  await room.rows.withVersionCheck<Doc, string>('docs', 1, {
    work: async (row) => row.body,
    write: (tx, row) =>
      room.rows.updateVersioned(tx, 'docs', 1, { version: row.version, set: { body: 'x' } }),
  })
  expect(await doc(1)).toEqual({ id: 1, body: 'x', version: 2 })
})

test('a write may delete the row', async () => {
  await room.rows.withVersionCheck<Doc>('docs', 1, {
    work: async () => undefined,
    write: async (tx) => tx.query('DELETE FROM docs WHERE id = 1'),
  })
  expect(await doc(1)).toBeUndefined()
})

test('a failing write changes nothing, and a failing work opens nothing', async () => {
  const work = async (): Promise<void> => undefined
  const failing = room.rows.withVersionCheck<Doc>('docs', 1, {
    attempts: 5,
    work,
    write: async (tx, row) => {
      await save(tx, row, 'half')
      throw new Error('second thoughts')
    },
  })
  await expect(failing).rejects.toThrow('second thoughts')
  const never = room.rows.withVersionCheck<Doc>('docs', 1, {
    work: async () => {
      throw new Error('no model today')
    },
    write: async () => expect.unreachable(),
  })
  await expect(never).rejects.toThrow('no model today')
  expect(await doc(1)).toEqual({ id: 1, body: 'one', version: 1 })
})

test('inside an open transaction it is refused before the work, not after it', async () => {
  const work = async (): Promise<never> => expect.unreachable()
  const nested = runTransaction(room.driver, () =>
    room.rows.withVersionCheck('docs', 1, { work, write: work }),
  )
  await expect(nested).rejects.toMatchObject({ code: 'TX_NESTED' })
})

test('a signal ends it between the parts', async () => {
  const stop = new AbortController()
  const stopped = room.rows.withVersionCheck('docs', 1, {
    signal: stop.signal,
    work: async (_, { signal }) => {
      expect(signal).toBe(stop.signal)
      stop.abort(new Error('enough'))
    },
    write: async () => expect.unreachable(),
  })
  await expect(stopped).rejects.toThrow('enough')
})

test('the lock is waited for no longer than asked', async () => {
  const holder = await room.begin()
  await room.rows.lock(holder.client, 'docs', [1])
  const checked = room.rows.withVersionCheck('docs', 1, {
    wait: 50,
    work: async () => undefined,
    write: async () => expect.unreachable(),
  })
  expect(named(await errorOf(checked))).toMatchObject({
    code: 'ROWS_TIMEOUT',
    blockers: [{ pid: holder.pid }],
  })
})

test.each([0, 1.5, -1])('%d attempts are refused', async (attempts) => {
  const work = async (): Promise<never> => expect.unreachable()
  const checked = room.rows.withVersionCheck('docs', 1, { attempts, work, write: work })
  await expect(checked).rejects.toMatchObject({ code: 'OPTION_INVALID' })
})

test('a version that is NULL protects nothing and is refused', async () => {
  await room.sql('ALTER TABLE docs ADD COLUMN IF NOT EXISTS loose int')
  const work = async (): Promise<never> => expect.unreachable()
  const options = { versionColumn: 'loose', work, write: work }
  await expect(room.rows.withVersionCheck('docs', 1, options)).rejects.toMatchObject({
    code: 'OPTION_INVALID',
    details: { option: 'versionColumn' },
  })
  await room.sql('ALTER TABLE docs DROP COLUMN loose')
})
