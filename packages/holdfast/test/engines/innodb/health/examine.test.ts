/** Each fault is staged, found and nothing else, and gone once the fix was done. */
import { waitUntil } from '@holdfast/testkit'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  createHoldfast,
  examine,
  type HealthFinding,
  lockKey,
  migrate,
} from '../../../../src/mysql.ts'
import type { HealthOptions } from '../../../../src/mysql.ts'
import { eachOwnServer } from '../observe/own-server.ts'

/** As a server should be that keeps what it has acknowledged. */
const settings = { 'innodb-flush-log-at-trx-commit': '1', 'sync-binlog': '1' }

/** Said of every server with its defaults; faults are looked for beside them. */
const usual: ReadonlySet<string> = new Set([
  'isolation-repeatable-read',
  'snapshot-isolation-off',
  'metadata-wait-long',
  'idle-timeout-unset',
])

eachOwnServer((place) => {
  beforeAll(async () => {
    await migrate(place.driver())
  })

  const found = async (options?: HealthOptions): Promise<readonly HealthFinding[]> =>
    (await examine(place.driver(), options)).filter(({ code }) => !usual.has(code))

  /** Every fix that is SQL is done as it stands. */
  const fixed = async (findings: readonly HealthFinding[]): Promise<void> => {
    const session = await place.open()
    for (const { fix } of findings) await session.rows(fix.replace(/;$/, ''))
  }

  test('a server as it should be has none but what its defaults cost', async () => {
    expect(await found()).toEqual([])
    const said = (await examine(place.driver())).map(({ code }) => code)
    expect(said).toContain('isolation-repeatable-read')
    expect(said.includes('idle-timeout-unset')).toBe(place.isMariadb)
    expect(said.includes('snapshot-isolation-off')).toBe(place.name === 'mariadb-10')
  })

  test.each([
    ['innodb_flush_log_at_trx_commit', '2', 'log-not-flushed', 'warning'],
    ['innodb_flush_log_at_trx_commit', '0', 'log-not-flushed', 'warning'],
    ['innodb_deadlock_detect', 'OFF', 'deadlock-detect-off', 'warning'],
  ])('%s = %s', async (name, value, code, severity) => {
    const session = await place.open()
    await session.rows(`SET GLOBAL ${name} = ${value}`)
    const findings = await found()
    expect(findings).toMatchObject([{ code, severity, object: `setting ${name}` }])
    await fixed(findings)
    expect(await found()).toEqual([])
  })

  test('serializable as the default, instead of repeatable read', async () => {
    const session = await place.open()
    await session.rows('SET GLOBAL TRANSACTION ISOLATION LEVEL SERIALIZABLE')
    const findings = await found()
    expect(findings).toMatchObject([{ code: 'isolation-serializable' }])
    await fixed(findings)
    const codes = (await examine(place.driver())).map(({ code }) => code)
    expect(codes.filter((code) => code.startsWith('isolation'))).toEqual([])
    await session.rows('SET GLOBAL TRANSACTION ISOLATION LEVEL REPEATABLE READ')
  })

  test('a server that takes no writes, and one that follows another and takes them', async () => {
    const session = await place.open()
    await session.rows('SET GLOBAL read_only = ON')
    expect(await found()).toMatchObject([{ code: 'standby', severity: 'error' }])
    await session.rows('SET GLOBAL read_only = OFF')
    await session.rows(
      place.isMariadb
        ? "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=1, MASTER_USER='nobody'"
        : "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=1, SOURCE_USER='nobody'",
    )
    expect(await found()).toMatchObject([{ code: 'replica-writable', severity: 'error' }])
    await session.rows('RESET REPLICA ALL')
    expect(await found()).toEqual([])
  })

  describe('tables', () => {
    test('of ours that are not there, lack an index, or cannot be locked', async () => {
      const session = await place.open()
      await session.rows('DROP TABLE holdfast_once')
      expect(await found()).toMatchObject([
        { code: 'own-table-missing', object: 'table holdfast_once' },
      ])
      await migrate(place.driver())
      await session.rows('ALTER TABLE holdfast_tick DROP KEY by_lease_until')
      const findings = await found()
      expect(findings).toMatchObject([{ code: 'own-index-missing', object: 'table holdfast_tick' }])
      await fixed(findings)
      await session.rows('ALTER TABLE holdfast_lock ENGINE = MyISAM')
      const codes = (await found()).map(({ code, object }) => `${code} ${object}`)
      expect(codes).toEqual([
        'own-table-unfit table holdfast_lock',
        'table-without-transactions table holdfast_lock',
      ])
      await session.rows('ALTER TABLE holdfast_lock ENGINE = InnoDB')
      expect(await found()).toEqual([])
    })

    test('of the application that have no transactions', async () => {
      const session = await place.open()
      await session.rows('CREATE TABLE `odd``name` (id INT PRIMARY KEY) ENGINE = MyISAM')
      const findings = await found()
      expect(findings).toMatchObject([
        { code: 'table-without-transactions', object: 'table odd`name' },
      ])
      await fixed(findings)
      expect(await found()).toEqual([])
    })

    test('that rows are claimed from', async () => {
      const session = await place.open()
      await session.rows(
        "CREATE TABLE outbox (id BIGINT AUTO_INCREMENT PRIMARY KEY, status VARCHAR(10) NOT NULL DEFAULT 'pending', claim_token CHAR(36), lease_until TIMESTAMP(6) NULL) ENGINE=InnoDB",
      )
      const claims = [{ table: 'outbox' }]
      const findings = await found({ claims })
      expect(new Set(findings.map(({ code, group }) => `${group} ${code}`))).toEqual(
        new Set(['claims index-missing']),
      )
      await fixed(findings)
      expect(await found({ claims })).toEqual([])
    })
  })

  test('transactions that somebody has left open', async () => {
    const session = await place.open()
    await session.all(
      'CREATE TABLE kept (id INT PRIMARY KEY) ENGINE=InnoDB',
      'BEGIN',
      'INSERT INTO kept VALUES (1)',
    )
    const limits = { transactionMs: 1, idleMs: 1 }
    const findings = await waitUntil(
      'it is found',
      async () => {
        const all = await found({ limits })
        return all.length > 0 ? all : undefined
      },
      { everyMs: 130 },
    )
    expect(findings).toMatchObject([
      { code: 'idle-in-transaction', object: `session ${session.id}`, group: 'sessions' },
    ])
    expect(findings[0]?.fix).toContain(`holdfast cancel ${session.id} --terminate`)
    // Not of who is in none, and not with the limits that are usual.
    expect(await found()).toEqual([])
    await session.rows('ROLLBACK')
  })

  test('transactions that are prepared, and that no session has any more', async () => {
    const session = await place.open()
    await session.all(
      'CREATE TABLE parted (id INT PRIMARY KEY) ENGINE=InnoDB',
      "XA START 'left'",
      'INSERT INTO parted VALUES (1)',
      "XA END 'left'",
      "XA PREPARE 'left'",
    )
    await session[Symbol.asyncDispose]()
    const limits = { transactionMs: 3_600_000, idleMs: 1 }
    const findings = await waitUntil(
      'it is found',
      async () => {
        const all = await found({ limits })
        return all.some(({ code }) => code === 'prepared-transaction') ? all : undefined
      },
      { everyMs: 130 },
    )
    expect(findings).toMatchObject([
      { code: 'prepared-transaction', severity: 'warning', object: 'prepared transactions' },
    ])
    expect(findings[0]?.fix).toContain('XA RECOVER')
    // Not with the limits that are usual.
    expect(await found()).toEqual([])
    const other = await place.open()
    await other.rows("XA ROLLBACK 'left'")
    await waitUntil('it is gone', async () => (await found({ limits })).length === 0 || undefined, {
      everyMs: 130,
    })
  })

  test('an account that writes also where nothing is written, and what one without rights is not shown', async () => {
    const session = await place.open()
    const database = new URL(place.url()).pathname.slice(1)
    await session.all("CREATE USER 'app'@'%'", `GRANT ALL ON \`${database}\`.* TO 'app'@'%'`)
    expect(await found({ role: "'app'@'%'" })).toEqual([])
    await session.rows("GRANT SUPER ON *.* TO 'app'@'%'")
    const findings = await found({ role: "'app'@'%'" })
    expect(findings).toMatchObject([{ code: 'role-superuser', object: "account 'app'@'%'" }])
    await fixed(findings)
    expect(await found({ role: "'nobody'@'%'" })).toMatchObject([{ code: 'not-checked' }])
    const asApp = (await examine(place.driver('app'))).filter(({ code }) => !usual.has(code))
    expect(asApp.every(({ code }) => code === 'not-checked')).toBe(true)
    expect(asApp.map(({ group }) => group)).toContain('sessions')
    expect(asApp.find(({ group }) => group === 'sessions')?.fix).toContain('GRANT PROCESS')
  })

  test('nothing is changed: neither a setting nor a row, nor a transaction of the caller', async () => {
    const hf = createHoldfast(place.driver())
    const session = await place.open()
    await hf.guard(lockKey('a', 1), async () => undefined)
    const before = await session.rows('SELECT * FROM holdfast_lock')
    const driver = place.driver()
    await examine(driver)
    const zone = { text: 'SELECT @@time_zone AS zone, @@autocommit AS each_alone', values: [] }
    expect(await driver.alone.query(zone)).toMatchObject([{ zone: 'SYSTEM', each_alone: 1 }])
    expect(await session.rows('SELECT * FROM holdfast_lock')).toEqual(before)
  })
}, settings)

eachOwnServer(
  (place) => {
    test('what only a restart changes', async () => {
      const codes = (await examine(place.driver())).map(
        ({ code, severity }) => `${severity} ${code}`,
      )
      expect(codes).toContain('error rollback-on-timeout')
      expect(codes).toContain('error doublewrite-off')
      expect(codes).toContain('warning binlog-not-synced')
      expect(codes).toContain('error own-table-missing')
      expect(codes.includes('warning performance-schema-off')).toBe(!place.isMariadb)
      const hf = createHoldfast(place.driver())
      const looked = hf.observe.locks()
      if (place.isMariadb) expect(await looked).toMatchObject({ roots: [] })
      else await expect(looked).rejects.toMatchObject({ code: 'OBSERVE_NOT_SHOWN' })
    })
  },
  {
    'innodb-rollback-on-timeout': 'ON',
    'innodb-doublewrite': 'OFF',
    'log-bin': 'binlog',
    'sync-binlog': '0',
    'performance-schema': 'OFF',
  },
)
