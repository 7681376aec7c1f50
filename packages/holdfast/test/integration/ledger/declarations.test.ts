/** What a book is, is written down at its first use; and a scope that was forgotten is told. */
import { sample } from '@holdfast/testkit'
import type pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../../src/index.ts'
import type { BookDeclaration, Verdict } from '../../../src/ledger/index.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { callerTransaction } from '../../support/pg-fixture.ts'

const fixture = ledgerFixture()
const once = (): { operationId: string } => ({ operationId: fresh() })
/** A process that has compared nothing yet. */
const another = (): Holdfast<pg.PoolClient> => createHoldfast(fromPg(fixture.pool))

/** Uses a book for the first time, as it is declared. */
type Use = (hf: Holdfast<pg.PoolClient>, book: string, tx?: pg.PoolClient) => Promise<unknown>

const useQuota =
  (window: object, amounts: 'number' | 'bigint' = 'number'): Use =>
  async (hf, name, tx) => {
    const quota = hf.quota({ name, limit: 10, ...(window as { per: 'day' }), amounts })
    return await (tx === undefined
      ? quota.consume('k', 1, once())
      : quota.consume(tx, 'k', 1, once()))
  }

const declarations: readonly (readonly [BookDeclaration, Use])[] = [
  [{ as: 'quota', per: 'day' }, useQuota({ per: 'day' })],
  [{ as: 'quota', per: 'month' }, useQuota({ per: 'month' })],
  [
    { as: 'quota', per: 'day', timeZone: 'Asia/Tokyo' },
    useQuota({ per: 'day', timeZone: 'Asia/Tokyo' }),
  ],
  [{ as: 'quota', per: 'lifetime' }, useQuota({ per: 'lifetime' })],
  [{ as: 'quota', per: 'day', amounts: 'bigint' }, useQuota({ per: 'day' }, 'bigint')],
  [{ as: 'quota', rolling: '1 h' }, useQuota({ rolling: '1 h' })],
  [{ as: 'quota', rolling: '2 h' }, useQuota({ rolling: '2 h' })],
  [{ as: 'quota', rate: '1 min' }, useQuota({ rate: '1 min' })],
  [{ as: 'quota', rate: '1 h' }, useQuota({ rate: '1 h' })],
  [{ as: 'credits' }, async (hf, name) => await hf.credits({ name }).grant('k', 1, once())],
  [
    { as: 'stock' },
    async (hf, name) =>
      await hf.stock({ name }).receive([{ sku: 'k', quantity: 1 }], { externalId: fresh() }),
  ],
]

/** Everything that is kept about a book. */
async function rowsOf(book: string): Promise<unknown> {
  const { rows } = await fixture.observer.query(
    `SELECT a.*, b.*, (SELECT count(*) FROM holdfast.movement m WHERE m.account = a.id) AS movements
     FROM holdfast.account a JOIN holdfast.balance b ON b.account = a.id WHERE a.book = $1 ORDER BY a.id`,
    [book],
  )
  return rows
}

const pairs = declarations.flatMap((one) =>
  declarations.filter((other) => other !== one).map((other) => [one, other] as const),
)

describe('a book that another process declares differently', () => {
  test.each(
    sample(pairs).map(
      ([one, other]) =>
        [`${JSON.stringify(one[0])} and ${JSON.stringify(other[0])}`, one, other] as const,
    ),
  )('is refused: %s', async (_, [, use], [, useOther]) => {
    const book = fresh()
    await use(fixture.hf, book)
    const before = await rowsOf(book)
    await expect(useOther(another(), book)).rejects.toMatchObject({ code: 'LEDGER_BOOK_DIFFERS' })
    expect(await rowsOf(book)).toEqual(before)
    // Who declares it alike is let in, and so is the first one.
    await use(another(), book)
    await use(fixture.hf, book)
  })

  test('is told what differs', async () => {
    const book = fresh()
    await useQuota({ per: 'day', timeZone: 'Europe/Berlin' })(fixture.hf, book)
    const failure = useQuota({ per: 'day' }, 'bigint')(another(), book)
    await expect(failure).rejects.toMatchObject({
      message: expect.stringContaining('timeZone Europe/Berlin, here UTC'),
      details: {
        book,
        differs: [
          { option: 'amounts', kept: 'number', here: 'bigint' },
          { option: 'timeZone', kept: 'Europe/Berlin', here: 'UTC' },
        ],
      },
    })
  })

  test('is refused in the same process before anything is sent', () => {
    const name = fresh()
    fixture.hf.quota({ name, limit: 1, per: 'day' })
    fixture.hf.quota({ name, limit: 2, per: 'day' })
    expect(() => fixture.hf.quota({ name, limit: 1, per: 'week' })).toThrow('LEDGER_BOOK_DIFFERS')
    expect(() => fixture.hf.stock({ name })).toThrow('LEDGER_BOOK_DIFFERS')
  })

  test('does not get a look at it either', async () => {
    const book = fresh()
    await useQuota({ per: 'day' })(fixture.hf, book)
    const quota = another().quota({ name: book, limit: 10, per: 'month' })
    await expect(quota.peek('k')).rejects.toMatchObject({ code: 'LEDGER_BOOK_DIFFERS' })
    await expect(another().credits({ name: book }).grants('k')).rejects.toMatchObject({
      code: 'LEDGER_BOOK_DIFFERS',
    })
  })

  test('is refused as a line, in a transaction, and when a limit is set', async () => {
    const book = fresh()
    await useQuota({ per: 'day' })(fixture.hf, book)
    const hf = another()
    const quota = hf.quota({ name: book, limit: 10, per: 'month' })
    const refused = { code: 'LEDGER_BOOK_DIFFERS' }
    await expect(
      hf.ledger.apply([await quota.line('k', 1)], { ...once(), scope: 'k' }),
    ).rejects.toMatchObject(refused)
    await expect(quota.setLimit('k', 5, once())).rejects.toMatchObject(refused)
    const tx = await callerTransaction(fixture)
    await expect(quota.consume(tx, 'k', 1, once())).rejects.toMatchObject(refused)
    // It was only looked at: the transaction goes on.
    await tx.query('SELECT 1')
    await tx.query('COMMIT')
  })

  test('control: without the check it counts in an account of its own', async () => {
    const book = fresh()
    await useQuota({ per: 'day' })(fixture.hf, book)
    await fixture.observer.query('DELETE FROM holdfast.book WHERE name = $1', [book])
    await useQuota({ per: 'month' })(another(), book)
    expect(await rowsOf(book)).toHaveLength(2)
  })
})

describe('the first use of a book', () => {
  test('by many at once writes one declaration, and all that differ are refused at the latest then', async () => {
    const book = fresh()
    const processes = Array.from({ length: 12 }, (_, at) => ({
      hf: another(),
      use: useQuota({ per: at % 2 === 0 ? 'day' : 'week' }),
    }))
    const first = await Promise.allSettled(processes.map(({ hf, use }) => use(hf, book)))
    const failures = first.filter(({ status }) => status === 'rejected')
    for (const failure of failures) {
      expect(failure).toMatchObject({ reason: { code: 'LEDGER_BOOK_DIFFERS' } })
    }
    const second = await Promise.allSettled(processes.map(({ hf, use }) => use(hf, book)))
    expect(second.filter(({ status }) => status === 'rejected')).toHaveLength(6)
  })

  test('in a transaction that is open makes nobody wait, and counts when it is committed', async () => {
    const book = fresh()
    const tx = await callerTransaction(fixture)
    await useQuota({ per: 'day' })(fixture.hf, book, tx)
    const stranger = another()
    // Its account is another one: it waits for nothing but the declaration, if for anything.
    const quota = stranger.quota({ name: book, limit: 5, per: 'week' })
    expect((await quota.consume('other', 1, { ...once(), wait: '5 s' })).ok).toBe(true)
    await tx.query('COMMIT')
    await expect(quota.consume('other', 1, once())).rejects.toMatchObject({
      code: 'LEDGER_BOOK_DIFFERS',
    })
  })

  test('in a transaction that is rolled back leaves nothing', async () => {
    const book = fresh()
    const tx = await callerTransaction(fixture)
    await useQuota({ per: 'day' })(fixture.hf, book, tx)
    await tx.query('ROLLBACK')
    await useQuota({ per: 'week' })(another(), book)
    await expect(useQuota({ per: 'day' })(fixture.hf, book)).rejects.toMatchObject({
      code: 'LEDGER_BOOK_DIFFERS',
    })
  })

  test.each(['REPEATABLE READ', 'SERIALIZABLE'])(
    'at %s does not fail for one that was faster',
    async (isolation) => {
      const book = fresh()
      const tx = await callerTransaction(fixture)
      await tx.query(`ROLLBACK; BEGIN ISOLATION LEVEL ${isolation}; SELECT 1`)
      await useQuota({ per: 'day' })(another(), book)
      const quota = fixture.hf.quota({ name: book, limit: 10, per: 'day' })
      expect((await quota.consume(tx, 'other', 1, once())).ok).toBe(true)
      await tx.query('COMMIT')
    },
  )
})

describe('a book that is declared anew', () => {
  test('lets in who declares it so, and refuses who does not', async () => {
    const book = fresh()
    await useQuota({ per: 'day' })(fixture.hf, book)
    const running = another()
    await useQuota({ per: 'day' })(running, book)
    await fixture.hf.ledger.redeclare(book, { as: 'quota', per: 'month' })
    await useQuota({ per: 'month' })(another(), book)
    // Whoever runs goes on as it is until it is started again.
    await useQuota({ per: 'day' })(running, book)
    await expect(useQuota({ per: 'day' })(another(), book)).rejects.toMatchObject({
      code: 'LEDGER_BOOK_DIFFERS',
    })
  })

  test('is listed with the others', async () => {
    const book = fresh()
    await useQuota({ per: 'day' })(fixture.hf, book)
    const listed = async (): Promise<unknown> =>
      (await fixture.hf.ledger.books()).find((each) => each.book === book)
    expect(await listed()).toEqual({
      book,
      declared: { as: 'quota', per: 'day', timeZone: 'UTC', amounts: 'number' },
      since: expect.any(Date),
    })
    await fixture.hf.ledger.redeclare(book, { as: 'quota', rolling: '90 s' })
    expect(await listed()).toMatchObject({ declared: { rolling: '90000 ms' } })
  })

  test.each([
    [{ as: 'bank' }],
    [{ as: 'quota' }],
    [{ as: 'quota', per: 'year' }],
    [{ as: 'quota', per: 'day', rate: '1 min' }],
    [{ as: 'quota', per: 'day', timeZone: 'Mars/Olympus' }],
    [{ as: 'quota', per: 'lifetime', timeZone: 'UTC' }],
    [{ as: 'credits', per: 'day' }],
    [{ as: 'stock', amounts: 'float' }],
  ])('is not declared as %j', async (declaration) => {
    const failure = fixture.hf.ledger.redeclare(fresh(), declaration as BookDeclaration)
    await expect(failure).rejects.toMatchObject({ code: 'OPTION_INVALID' })
  })
})

describe('what is said of a book by its name alone', () => {
  test('L12: a correction never goes to an account beside the windows', async () => {
    const name = fresh()
    const quota = fixture.hf.quota({ name, limit: 10, per: 'day' })
    await quota.consume('k', 1, once())
    for (const hf of [fixture.hf, another()]) {
      // Also of a key that has no window yet.
      for (const key of ['k', 'new']) {
        const adjusting = hf.ledger.adjust(name, key, 5, { ...once(), reason: 'r' })
        await expect(adjusting).rejects.toMatchObject({ code: 'OPTION_INVALID' })
      }
    }
    expect(await rowsOf(name)).toHaveLength(1)
    expect((await quota.adjust('new', 5, { ...once(), reason: 'r' })).ok).toBe(true)
  })

  test('opening balances fit what it is', async () => {
    const [stock, quota] = [fresh(), fresh()]
    await fixture.hf.stock({ name: stock }).receive([{ sku: 'a', quantity: 1 }], {
      externalId: fresh(),
    })
    await useQuota({ per: 'day' })(fixture.hf, quota)
    const open = async (book: string, walled: boolean): Promise<unknown> =>
      await another().ledger.open(book, [{ key: 'b', balance: 1 }], { ...once(), walled })
    await expect(open(stock, false)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    await expect(open(quota, false)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    expect(await open(stock, true)).toMatchObject({ opened: 1 })
  })
})

describe('a scope that was forgotten', () => {
  const forgotten = { code: 'LEDGER_SCOPE_FORGOTTEN' }

  test('is told, by whatever way the operation goes', async () => {
    const name = fresh()
    const quota = fixture.hf.quota({ name, limit: 10, per: 'day' })
    const other = fixture.hf.quota({ name: fresh(), limit: 10, per: 'day' })
    await quota.consume('k', 1, { ...once(), scope: 'tenant' })
    const before = await rowsOf(name)
    const tx = await callerTransaction(fixture)
    const ways: readonly (() => Promise<unknown>)[] = [
      () => quota.consume('k', 1, once()),
      // Too much: it would be refused for want of room, and that would be about the wrong account.
      () => quota.consume('k', 11, once()),
      () => quota.hold('k', 1, { ...once(), ttl: '1 min' }),
      () => quota.adjust('k', 1, { ...once(), reason: 'r' }),
      async () =>
        await fixture.hf.ledger.apply([await quota.line('k', 1), await other.line('k', 1)], once()),
      () => quota.consume(tx, 'k', 1, once()),
    ]
    for (const way of ways) await expect(way()).rejects.toMatchObject(forgotten)
    expect(await rowsOf(name)).toEqual(before)
    await tx.query('ROLLBACK')
  })

  test('stops nobody else who is sent with it', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 10, per: 'lifetime' })
    await quota.consume('k', 1, { ...once(), scope: 'tenant' })
    const answers = await Promise.allSettled(
      ['a', 'k', 'b', 'c'].map((key) => quota.consume(key, 1, once())),
    )
    expect(answers.map(({ status }) => status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
    ])
  })

  test('is not what who names the key as its scope, or has used it so before, is told', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 10, per: 'lifetime' })
    await quota.consume('k', 1, { ...once(), scope: 'tenant' })
    const accepted = async (call: Promise<Verdict<number>>): Promise<void> => {
      expect((await call).ok).toBe(true)
    }
    await accepted(quota.consume('k', 1, { ...once(), scope: 'k' }))
    await accepted(quota.consume('k', 1, once()))
    await accepted(quota.consume('k', 1, { ...once(), scope: 'second' }))
    await accepted(quota.consume('new', 1, once()))
  })

  test('is not told once a window is over, of a key that is used so', async () => {
    const name = fresh()
    const quota = fixture.hf.quota({ name, limit: 10, per: 'minute' })
    await quota.consume('k', 1, once())
    await quota.consume('k', 1, { ...once(), scope: 'tenant' })
    // As if a minute had gone by: the accounts are those of a window that is over.
    await fixture.observer.query(
      `UPDATE holdfast.account SET window_start = window_start - interval '1 minute',
         window_end = window_end - interval '1 minute', id = gen_random_uuid() WHERE book = $1`,
      [name],
    )
    expect((await quota.consume('k', 1, once())).ok).toBe(true)
  })

  test('control: without the look it becomes another account', async () => {
    const name = fresh()
    const quota = fixture.hf.quota({ name, limit: 10, per: 'lifetime' })
    await quota.consume('k', 1, { ...once(), scope: 'tenant' })
    const { rows } = await fixture.observer.query<{ body: string }>(
      "SELECT pg_get_functiondef('holdfast.is_forgotten_scope'::regproc) AS body",
    )
    onTestFinished(async () => void (await fixture.observer.query(rows[0]?.body as string)))
    await fixture.observer.query(
      `CREATE OR REPLACE FUNCTION holdfast.is_forgotten_scope(book text, key text, scope text)
       RETURNS boolean LANGUAGE sql AS 'SELECT false'`,
    )
    await quota.consume('k', 1, once())
    expect(await rowsOf(name)).toHaveLength(2)
  })
})
