import { beforeEach, describe, expect, test } from 'vitest'
import { errnoFrom, waits } from './support/innodb-session.ts'
import { onEveryServer } from './support/on-every-server.ts'

const lockTable = `CREATE TABLE holdfast_lock (
  name VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,
  seq BIGINT NOT NULL, conn BIGINT, since DATETIME(6)) ENGINE=InnoDB`

const take = (name: string): string =>
  `INSERT INTO holdfast_lock (name, seq, conn, since) VALUES ('${name}', 1, CONNECTION_ID(), NOW(6))
   ON DUPLICATE KEY UPDATE seq = seq + 1, conn = CONNECTION_ID(), since = NOW(6)`

/** Waits for the row, and says whether the snapshot is as old as the last holder. */
const takeChecked = (name: string): string =>
  `SELECT l.seq AS seq, (SELECT s.seq FROM holdfast_lock s WHERE s.name = l.name) AS snap
   FROM holdfast_lock l WHERE l.name = '${name}' FOR UPDATE`

const begin = (level: string): string[] => [
  `SET TRANSACTION ISOLATION LEVEL ${level}`,
  'START TRANSACTION',
]

/** A lock by name is a row that every holder writes. */
onEveryServer((place, { isMariadb, refusesOldSnapshots }) => {
  beforeEach(async () => {
    await using session = await place.open()
    await session.all(
      'DROP TABLE IF EXISTS holdfast_lock, t, other',
      lockTable,
      'CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL) ENGINE=InnoDB',
      'INSERT INTO t VALUES (1, 10)',
      `INSERT INTO holdfast_lock (name, seq) VALUES ('known', 1)`,
    )
  })

  describe.each(['READ COMMITTED', 'REPEATABLE READ'])('at %s', (level) => {
    test.each(['known', 'new'])('a written row is held until COMMIT: %s', async (name) => {
      await using holder = await place.open()
      await using other = await place.open()
      await holder.all(...begin(level), take(name))
      await other.all(...begin(level))
      const taking = other.rows(take(name))
      expect(await waits(holder, other, taking)).toBe(true)
      await holder.rows('COMMIT')
      await taking
      expect(await other.value(`SELECT seq FROM holdfast_lock WHERE name = '${name}'`)).toBe(
        name === 'known' ? 3 : 2,
      )
      await other.rows('ROLLBACK')
    })

    test('neighbours are not held back', async () => {
      await using holder = await place.open()
      await using other = await place.open()
      await holder.all(...begin(level), take('b'))
      await other.all(...begin(level))
      const taking = other.all(take('a'), take('c'))
      expect(await waits(holder, other, taking)).toBe(false)
      await holder.rows('COMMIT')
    })

    test('of two who wait for a name that is not kept, one may die as of a deadlock', async () => {
      await using holder = await place.open()
      await using first = await place.open()
      await using second = await place.open()
      await holder.all(...begin(level), take('new'))
      await first.all(...begin(level))
      await second.all(...begin(level))
      const taking = [first, second].map((session) => errnoFrom(session.rows(take('new'))))
      await holder.seesWaiting(first)
      await holder.seesWaiting(second)
      await holder.rows('ROLLBACK')
      const winner = await Promise.race(
        [first, second].map(async (session, at) =>
          (await taking[at]) === undefined ? session : new Promise<never>(() => {}),
        ),
      )
      await winner.rows('COMMIT')
      const [one, two] = await Promise.all(taking)
      expect([undefined, 1213]).toContain(one)
      expect([undefined, 1213]).toContain(two)
    })
  })

  test('control: with INSERT IGNORE, then FOR UPDATE, two holders of a known name deadlock', async () => {
    const first = `INSERT IGNORE INTO holdfast_lock (name, seq) VALUES ('known', 1)`
    await using one = await place.open()
    await using two = await place.open()
    await one.all('BEGIN', first)
    await two.all('BEGIN', first)
    const lock = `SELECT seq FROM holdfast_lock WHERE name = 'known' FOR UPDATE`
    const waiting = errnoFrom(one.rows(lock))
    await two.seesWaiting(one)
    const dying = errnoFrom(two.rows(lock))
    expect([await waiting, await dying]).toContain(1213)
  })

  /** What an earlier statement of the same transaction makes of reads after the lock. */
  const cases: {
    readonly before: string
    readonly level: string
    /** What a plain read shows after the lock was waited for. */
    readonly reads: 'fresh' | 'stale' | 1020
  }[] = [
    ...[
      'SELECT 1',
      'SELECT NOW(6)',
      'SELECT id FROM t WHERE id = 1 FOR UPDATE',
      'UPDATE t SET v = v WHERE id = 1',
    ].map((before) => ({ before, level: 'REPEATABLE READ', reads: 'fresh' as const })),
    { before: 'SELECT v FROM t', level: 'READ COMMITTED', reads: 'fresh' },
    {
      before: 'SELECT v FROM t',
      level: 'REPEATABLE READ',
      reads: refusesOldSnapshots ? 1020 : 'stale',
    },
    {
      before: 'SELECT COUNT(*) FROM information_schema.TABLES',
      level: 'REPEATABLE READ',
      reads: isMariadb ? 'fresh' : 'stale',
    },
  ]
  test.each(cases)('after $before at $level: $reads', async ({ before, level, reads }) => {
    await using holder = await place.open()
    await using late = await place.open()
    await holder.all(...begin('READ COMMITTED'), takeChecked('known'))
    await holder.rows(`UPDATE holdfast_lock SET seq = seq + 1 WHERE name = 'known'`)
    await holder.rows('INSERT INTO t VALUES (2, 20)')
    await late.all(...begin(level), before)
    const taking = late.rows(takeChecked('known'))
    taking.catch(() => undefined)
    await holder.seesWaiting(late)
    await holder.rows('COMMIT')
    if (reads === 1020) {
      expect(await errnoFrom(taking)).toBe(1020)
      expect(await late.isInTransaction()).toBe(false)
      return
    }
    const [row] = await taking
    expect(row?.['seq'] === row?.['snap']).toBe(reads === 'fresh')
    expect(await late.value('SELECT COUNT(*) FROM t')).toBe(reads === 'fresh' ? 2 : 1)
    await late.rows('ROLLBACK')
  })

  test('what the lock row says of its holder can be read while it is held', async () => {
    await using holder = await place.open()
    await using other = await place.open()
    await holder.all(...begin('READ COMMITTED'), take('cart:7'))
    await other.rows('SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED')
    expect(await other.value(`SELECT conn FROM holdfast_lock WHERE name = 'cart:7'`)).toBe(
      holder.id,
    )
    await holder.rows('ROLLBACK')
    expect(await other.value(`SELECT conn FROM holdfast_lock WHERE name = 'cart:7'`)).toBe(
      undefined,
    )
  })

  test('a limit on one statement ends its wait, and leaves no setting behind', async () => {
    await using holder = await place.open()
    await using other = await place.open()
    await holder.all(...begin('READ COMMITTED'), take('known'))
    await other.all(...begin('READ COMMITTED'))
    const limited = isMariadb
      ? `SET STATEMENT max_statement_time = 0.3 FOR ${take('known')}`
      : takeChecked('known').replace('SELECT', 'SELECT /*+ MAX_EXECUTION_TIME(300) */')
    const began = performance.now()
    expect(await errnoFrom(other.rows(limited))).toBe(isMariadb ? 1969 : 3024)
    expect(performance.now() - began).toBeGreaterThan(290)
    expect(await other.isInTransaction()).toBe(true)
    if (isMariadb) expect(Number(await other.value('SELECT @@max_statement_time'))).toBe(0)
    else expect(Number(await other.value('SELECT @@max_execution_time'))).toBe(0)
    await holder.rows('ROLLBACK')
  })

  test('not to wait is said in two ways, one of them by name of the reason', async () => {
    await using holder = await place.open()
    await using other = await place.open()
    await holder.all(...begin('READ COMMITTED'), take('known'))
    await other.all(...begin('READ COMMITTED'))
    const select = `SELECT name FROM holdfast_lock WHERE name = 'known' FOR UPDATE`
    expect(await errnoFrom(other.rows(`${select} NOWAIT`))).toBe(isMariadb ? 1205 : 3572)
    expect(await other.rows(`${select} SKIP LOCKED`)).toEqual([])
    expect(await other.isInTransaction()).toBe(true)
    await holder.rows('ROLLBACK')
    expect(await other.rows(`${select} SKIP LOCKED`)).toEqual([{ name: 'known' }])
  })

  test('control: GET_LOCK outlives its transaction', async () => {
    await using holder = await place.open()
    await using other = await place.open()
    await holder.rows('BEGIN')
    expect(await holder.value(`SELECT GET_LOCK('known', 0)`)).toBe(1)
    await holder.rows('COMMIT')
    expect(await other.value(`SELECT GET_LOCK('known', 0)`)).toBe(0)
    await holder.rows(`DO RELEASE_LOCK('known')`)
    expect(await other.value(`SELECT GET_LOCK('known', 0)`)).toBe(1)
  })
})
