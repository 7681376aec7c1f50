/**
 * Every call about rows, behind everything that stands before a row: the table as a whole, what it is made of, their
 * indexes, and who has come first. NOWAIT and SKIP LOCKED do not know of these. Each ends in time, with its code and
 * the blocker.
 */
import { waitUntilBlocked } from '@holdfast/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { HoldfastError } from '../../../src/errors.ts'
import { createRows } from '../../../src/entries/rows.ts'
import { inTime, named } from '../../support/in-time.ts'
import { errorOf, type OpenTransaction, openRoom, type Room } from './open-room.ts'
import { graceMs, timed, timeouts } from './row-waits.ts'

let room: Room
const limitMs = 300

beforeAll(async () => {
  room = await openRoom()
  await room.sql(`CREATE TABLE parts (id int PRIMARY KEY, version int NOT NULL DEFAULT 1)
    PARTITION BY RANGE (id)`)
  await room.sql(`CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (9)
    PARTITION BY RANGE (id)`)
  await room.sql('CREATE TABLE lowest PARTITION OF low FOR VALUES FROM (0) TO (5)')
  await room.sql('CREATE TABLE middle PARTITION OF low FOR VALUES FROM (5) TO (9)')
  await room.sql('INSERT INTO parts VALUES (1), (6)')
})
afterEach(async () => room.tidy())
afterAll(async () => room.close())

interface InTheWay {
  /** Who has it, or came first. */
  readonly as: (holder: OpenTransaction) => Promise<OpenTransaction>
  /** Only who changes something has to wait for it. */
  readonly onlyForChanges?: boolean
}

const locked = (text: string): InTheWay['as'] =>
  async function lockedBy(holder) {
    await holder.sql(text)
    return holder
  }

const ways: Readonly<Record<string, InTheWay>> = {
  'the whole table': { as: locked('LOCK TABLE parts IN ACCESS EXCLUSIVE MODE') },
  'a part of a part': { as: locked('LOCK TABLE lowest IN ACCESS EXCLUSIVE MODE') },
  'an index that is made anew': { as: locked('REINDEX TABLE lowest') },
  'an index that is made': {
    as: locked('CREATE INDEX ON lowest (version)'),
    onlyForChanges: true,
  },
  'an ALTER TABLE that waits for somebody': {
    async as(holder) {
      await holder.sql('SELECT FROM parts')
      const altering = await room.begin()
      altering.sql('ALTER TABLE parts ADD COLUMN note text').catch(() => undefined)
      await waitUntilBlocked(room.observer, altering.pid)
      return altering
    },
  },
}

interface Call {
  readonly changes?: boolean
  readonly code: 'ROWS_TIMEOUT' | 'ROWS_BUSY'
  readonly ms: number
  readonly call: () => Promise<unknown>
}

async function inTransaction(call: (tx: OpenTransaction) => Promise<unknown>): Promise<unknown> {
  const transaction = await room.begin()
  try {
    return await call(transaction)
  } finally {
    await transaction.rollback()
  }
}

const wait = limitMs
const writing = { work: async () => undefined, write: async () => undefined } as const
const timeout = { code: 'ROWS_TIMEOUT', ms: limitMs } as const
const busy = { code: 'ROWS_BUSY', ms: 0 } as const
const calls: Readonly<Record<string, Call>> = {
  'rows.lock': {
    ...timeout,
    call: () => inTransaction(({ client }) => room.rows.lock(client, 'parts', [1], { wait })),
  },
  'rows.lock that keeps the transaction': {
    ...timeout,
    call: () =>
      inTransaction(({ client }) =>
        room.rows.lock(client, 'parts', [1], { wait, keepTransaction: true }),
      ),
  },
  'rows.lock that skips, as long as calls wait otherwise': {
    ...timeout,
    call: () =>
      inTransaction(({ client }) =>
        createRows(room.driver, { wait }).lock(client, 'parts', [1], { wait: 'skip' }),
      ),
  },
  'rows.lock that skips, where calls do not wait': {
    ...busy,
    call: () =>
      inTransaction(({ client }) =>
        createRows(room.driver, { wait: 'nowait' }).lock(client, 'parts', [1], { wait: 'skip' }),
      ),
  },
  'rows.lock that does not wait': {
    ...busy,
    call: () =>
      inTransaction(({ client }) => room.rows.lock(client, 'parts', [1], { wait: 'nowait' })),
  },
  'rows.updateVersioned': {
    ...timeout,
    changes: true,
    call: () =>
      inTransaction(({ client }) =>
        room.rows.updateVersioned(client, 'parts', 1, { version: 1, set: {}, wait }),
      ),
  },
  'rows.updateVersioned that does not wait': {
    code: 'ROWS_BUSY',
    ms: 50,
    changes: true,
    call: () =>
      inTransaction(({ client }) =>
        room.rows.updateVersioned(client, 'parts', 1, { version: 1, set: {}, wait: 'nowait' }),
      ),
  },
  'rows.updateVersioned where calls do not wait': {
    code: 'ROWS_BUSY',
    ms: 50,
    changes: true,
    call: () =>
      inTransaction(({ client }) =>
        createRows(room.driver, { wait: 'nowait' }).updateVersioned(client, 'parts', 1, {
          version: 1,
          set: {},
        }),
      ),
  },
  'rows.withVersionCheck': {
    ...timeout,
    changes: true,
    call: () => room.rows.withVersionCheck('parts', 1, { ...writing, wait }),
  },
}

const cells = Object.entries(calls).flatMap(([name, call]) =>
  Object.entries(ways)
    .filter(([, way]) => way.onlyForChanges !== true || call.changes === true)
    .map(([way, { as }]) => ({ name, way, as, ...call })),
)

test.each(cells)('$name, behind $way', async ({ as, call, code, ms }) => {
  const blocker = await as(await room.begin())
  const { error, afterMs } = await timed(call)
  expect(named(error)).toMatchObject({ code, blockers: [{ pid: blocker.pid }] })
  expect(afterMs).toBeGreaterThanOrEqual(ms)
  inTime(afterMs, ms + graceMs)
})

test('the limit of a call that skips is one for all parts', async () => {
  const [first, second] = [await room.begin(), await room.begin()]
  await first.sql('LOCK TABLE lowest IN ACCESS EXCLUSIVE MODE')
  await second.sql('LOCK TABLE middle IN ACCESS EXCLUSIVE MODE')
  const waiter = await room.begin()
  const began = performance.now()
  const waiting = errorOf(
    createRows(room.driver, { wait: 1_000 }).lock(waiter.client, 'parts', [1, 6], { wait: 'skip' }),
  )
  await waitUntilBlocked(room.observer, waiter.pid)
  while (performance.now() - began < 600) await room.sql('SELECT 1')
  await first.rollback()
  const error = await waiting
  inTime(performance.now() - began, 1_000 + graceMs)
  expect(named(error)).toMatchObject({ code: 'ROWS_TIMEOUT', blockers: [{ pid: second.pid }] })
})

test("and gives way to the caller's shorter statement_timeout", async () => {
  const holder = await room.begin()
  await holder.sql('LOCK TABLE lowest IN ACCESS EXCLUSIVE MODE')
  const waiter = await room.begin()
  await waiter.sql('SET LOCAL statement_timeout = 100')
  const { error, afterMs } = await timed(() =>
    room.rows.lock(waiter.client, 'parts', [1], { wait: 'skip' }),
  )
  expect(named(error)).toMatchObject({
    code: 'ROWS_TIMEOUT',
    details: { endedBy: 'statement_timeout' },
    blockers: [{ pid: holder.pid }],
  })
  inTime(afterMs, 100 + graceMs)
})

describe('the counting of withVersionCheck', () => {
  /** Somebody makes an index while `write` runs: the row is locked, and no row of the table may be changed. */
  async function counting(options: { wait?: number | 'nowait' }): Promise<unknown> {
    const indexing = await room.begin()
    return room.rows.withVersionCheck('parts', 1, {
      ...options,
      work: async () => undefined,
      write: async () => await indexing.sql('LOCK TABLE lowest IN SHARE MODE'),
    })
  }

  test.each([
    [{ wait: limitMs }, limitMs, 'ROWS_TIMEOUT'],
    [{ wait: 'nowait' as const }, 50, 'ROWS_BUSY'],
  ])('waits no longer than asked either: %o', async (options, ms, code) => {
    const { error, afterMs } = await timed(() => counting(options))
    expect(named(error)).toMatchObject({ code, blockers: [{}] })
    expect(afterMs).toBeGreaterThanOrEqual(ms)
    inTime(afterMs, ms + graceMs)
  })

  test('leaves the timeouts of its transaction alone', async () => {
    // What a deferred trigger sees, which runs after the counting.
    await room.sql('CREATE TABLE seen (lock text, statement text)')
    await room.sql(`CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      INSERT INTO seen VALUES (current_setting('lock_timeout'), current_setting('statement_timeout'));
      RETURN NULL; END $$`)
    await room.sql(`CREATE CONSTRAINT TRIGGER seeing AFTER UPDATE ON lowest
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION see()`)
    const plain = await room.begin()
    const before = await timeouts(plain)
    await room.rows.withVersionCheck('parts', 1, { ...writing, wait })
    expect(await room.sql('SELECT * FROM seen')).toEqual([before])
  })
})

describe('nobody is named who is not in the way', () => {
  beforeAll(async () => {
    await room.sql('CREATE TABLE seats (id int PRIMARY KEY, version int NOT NULL DEFAULT 1)')
    await room.sql('CREATE TABLE guests (seat int REFERENCES seats)')
    await room.sql('INSERT INTO seats SELECT generate_series(1, 3)')
  })

  /** Fails in a savepoint of the caller: what it had before, it still has. */
  async function inSavepoint(
    { client, sql }: OpenTransaction,
    call: (tx: OpenTransaction['client']) => Promise<unknown>,
  ): Promise<HoldfastError> {
    await sql('SAVEPOINT mine')
    const error = (await errorOf(call(client))) as HoldfastError
    await sql('ROLLBACK TO SAVEPOINT mine')
    return error
  }

  test('not ourselves, with a row or the table', async () => {
    const [me, other] = [await room.begin(), await room.begin()]
    await other.sql('SELECT FROM seats WHERE id = 2 FOR UPDATE')
    await room.rows.lock(me.client, 'seats', [1])
    const both = await inSavepoint(me, (tx) => room.rows.lock(tx, 'seats', [1, 2], { wait: 100 }))
    expect(named(both).blockers).toMatchObject([{ pid: other.pid }])
    await room.rows.lockTable(me.client, 'seats', 'row exclusive')
    const change = { version: 1, set: {}, wait: 100 }
    const changed = await inSavepoint(me, (tx) => room.rows.updateVersioned(tx, 'seats', 2, change))
    expect(named(changed).blockers).toMatchObject([{ pid: other.pid }])
  })

  test('nor who waits for us', async () => {
    const [me, other] = [await room.begin(), await room.begin()]
    await other.sql('SELECT FROM seats WHERE id = 2 FOR UPDATE')
    await room.rows.lock(me.client, 'seats', [1])
    const altering = await room.begin()
    const altered = altering.sql('ALTER TABLE seats ADD COLUMN note text').catch(() => undefined)
    await waitUntilBlocked(room.observer, altering.pid)
    const error = await inSavepoint(me, (tx) => room.rows.lock(tx, 'seats', [2], { wait: 100 }))
    expect(error).toMatchObject({ code: 'ROWS_TIMEOUT', blockers: [] })
    await room.sql('SELECT pg_cancel_backend($1)', [altering.pid])
    await altered
  })

  test.each([
    ['a SELECT', async ({ sql }: OpenTransaction) => sql('SELECT FROM seats LIMIT 1')],
    [
      'lockTable',
      async ({ client }: OpenTransaction) => room.rows.lockTable(client, 'seats', 'row share'),
    ],
  ])('nor who waits for what %s has locked before', async (_, use) => {
    const [me, other, altering] = [await room.begin(), await room.begin(), await room.begin()]
    await other.sql('SELECT FROM seats WHERE id = 2 FOR UPDATE')
    await use(me)
    const altered = altering.sql('ALTER TABLE seats ADD COLUMN note text').catch(() => undefined)
    await waitUntilBlocked(room.observer, altering.pid)
    const error = await errorOf(room.rows.lock(me.client, 'seats', [2], { wait: 200 }))
    expect(error).toMatchObject({ code: 'ROWS_TIMEOUT', blockers: [] })
    await room.sql('SELECT pg_cancel_backend($1)', [altering.pid])
    await altered
  })

  test('nor who has the row in a way that does not matter', async () => {
    const [child, sharing, waiter] = [await room.begin(), await room.begin(), await room.begin()]
    await child.sql('INSERT INTO guests VALUES (3)')
    await sharing.sql('SELECT FROM seats WHERE id = 3 FOR SHARE')
    const error = await errorOf(room.rows.lock(waiter.client, 'seats', [3], { wait: 100 }))
    expect(named(error).blockers).toMatchObject([{ pid: sharing.pid }])
  })

  test('nor who has only an index, where the table is locked', async () => {
    const [indexing, reading, waiter] = [await room.begin(), await room.begin(), await room.begin()]
    await indexing.sql('ALTER INDEX seats_pkey SET (fillfactor = 80)')
    await reading.sql('LOCK TABLE seats IN ROW EXCLUSIVE MODE')
    const error = await errorOf(
      room.rows.lockTable(waiter.client, 'seats', 'exclusive', { wait: 100 }),
    )
    expect(named(error).blockers).toMatchObject([{ pid: reading.pid }])
  })
})

describe('what no wait of ours has ended', () => {
  beforeAll(async () => {
    await room.sql('CREATE TABLE other (id int PRIMARY KEY)')
    await room.sql('INSERT INTO other VALUES (1)')
    await room.sql(
      'CREATE TABLE busy (id int PRIMARY KEY, version int NOT NULL DEFAULT 1, how text)',
    )
    await room.sql(`INSERT INTO busy VALUES (1, 1, 'nowait'), (2, 1, 'slow'), (3, 1, 'never'),
      (4, 1, 'old'), (5, 1, 'uncounted')`)
    await room.sql(`CREATE FUNCTION busily() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF NEW.how = 'nowait' THEN PERFORM FROM other FOR UPDATE NOWAIT; END IF;
      IF NEW.how = 'slow' THEN PERFORM pg_sleep(0.1); END IF;
      IF NEW.how = 'never' THEN RETURN NULL; END IF;
      IF NEW.how = 'old' THEN RETURN OLD; END IF;
      IF NEW.how = 'uncounted' THEN NEW.version := OLD.version; END IF;
      RETURN NEW; END $$`)
    await room.sql(`CREATE TRIGGER busily BEFORE UPDATE ON busy
      FOR EACH ROW EXECUTE FUNCTION busily()`)
  })

  const change = { version: 1, set: {} }

  test('is told as it is', async () => {
    const holder = await room.begin()
    await holder.sql('SELECT FROM other FOR UPDATE')
    const { client } = await room.begin()
    const failing = room.rows.updateVersioned(client, 'busy', 1, { ...change, wait: 5_000 })
    expect((await errorOf(failing)).code).toBe('55P03')
  })

  test('a change that does not wait may take its time', async () => {
    const { client } = await room.begin()
    const rows = createRows(room.driver, { wait: 'nowait' })
    expect(await rows.updateVersioned(client, 'busy', 2, change)).toMatchObject({ version: 2 })
  })

  // By RETURN NULL, by RETURN OLD, and by putting the version back.
  test.each([3, 4, 5])('a change that a trigger suppresses is no success: %i', async (id) => {
    const { client } = await room.begin()
    expect(await errorOf(room.rows.updateVersioned(client, 'busy', id, change))).toMatchObject({
      code: 'ROWS_CHANGE_SUPPRESSED',
      details: { subject: 'busy' },
    })
  })

  test.each([3, 4, 5])('nor is the counting of withVersionCheck: %i', async (id) => {
    const checked = room.rows.withVersionCheck('busy', id, writing)
    expect(await errorOf(checked)).toMatchObject({ code: 'ROWS_CHANGE_SUPPRESSED' })
  })

  test('control: another version is a conflict', async () => {
    const { client } = await room.begin()
    const conflict = room.rows.updateVersioned(client, 'busy', 3, { ...change, version: 7 })
    expect(await errorOf(conflict)).toMatchObject({
      code: 'ROWS_VERSION_CONFLICT',
      details: { foundVersion: '1' },
    })
  })
})

test('calls that are made at once leave the timeouts as they were', async () => {
  const session = await room.begin()
  await session.sql(`SET LOCAL lock_timeout = '7s'`)
  const before = await timeouts(session)
  const { client } = session
  await Promise.all([
    room.rows.lockTable(client, 'parts', 'row share', { wait: 300 }),
    room.rows.lock(client, 'parts', [1], { wait: 400 }),
    room.rows.lockTable(client, 'lowest', 'row share', { wait: 500 }),
    room.rows.updateVersioned(client, 'parts', 6, { version: 1, set: {}, wait: 600 }),
  ])
  expect(await timeouts(session)).toEqual(before)
})
