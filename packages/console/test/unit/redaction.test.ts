import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { maskLiterals } from '../../src/watch/mask-literals.ts'
import { Redactor } from '../../src/watch/redactor.ts'

describe('values in SQL', () => {
  test.each([
    [`SELECT * FROM t WHERE a = 'secret'`, `SELECT * FROM t WHERE a = ?`],
    [`SELECT 'it''s secret', 2`, `SELECT ?, ?`],
    [`SELECT E'it\\'s secret', 1`, `SELECT ?, ?`],
    [`SELECT $$secret$$, $tag$secret $$ secret$tag$`, `SELECT ?, ?`],
    [`SELECT $1, t1.col2 FROM "t1"`, `SELECT $1, t1.col2 FROM "t1"`],
    [`SELECT 1 AS "secret@example.com", u&"secr\\0065t"`, `SELECT ? AS ?, u&?`],
    [`SELECT $é$secret$é$`, `SELECT ?`],
    [`SET LOCAL app.customer TO secret`, `SET LOCAL app.customer ?`],
    [`BEGIN; SET x = secret, secret; UPDATE t SET a = b`, `BEGIN; SET x ?; UPDATE t SET a = b`],
    [`/* why */ LISTEN secret`, ` LISTEN ?`],
    [`SET ROLE secret`, `SET ?`],
    [`SELECT 0x1f, 1.5e-3, 42`, `SELECT ?, ?-?, ?`],
    [`SELECT 1 -- secret`, `SELECT ? `],
    [`SELECT 1 /* secret */ + 2`, `SELECT ?  + ?`],
    [`SELECT /* a /* secret */ secret */ 1`, `SELECT `],
    [`SELECT N'secret', B'101', X'1f', U&'secret'`, `SELECT ?, ?, ?, ?`],
    [`SELECT date'2020-01-01', '1'`, `SELECT date?, ?`],
    [`INSERT INTO t VALUES ('secr`, `INSERT INTO t VALUES (?`],
    [`SELECT "secr`, `SELECT ?`],
    [`SELECT $$secr`, `SELECT ?`],
    [`SELECT /* secr`, `SELECT `],
    [`SELECT 'a\\', 'secret'`, `SELECT ?`],
    [`SELECT ünïcode1 FROM tablé2`, `SELECT ünïcode1 FROM tablé2`],
  ])('%s', (sql, masked) => {
    expect(maskLiterals(sql)).toBe(masked)
    expect(maskLiterals(sql)).not.toMatch(/secr/)
  })

  test.each([
    [`SELECT * FROM t WHERE a = "secret"`, `SELECT * FROM t WHERE a = ?`],
    ['SELECT `t1`.`col2`, `secret@example.com` FROM `t1`', 'SELECT `t1`.`col2`, ? FROM `t1`'],
    ['SELECT 1 # secret', 'SELECT ? '],
    ['SELECT 1 # secret\nFROM t', 'SELECT ? \nFROM t'],
    [`SELECT "a\\" secret", 1`, `SELECT ?`],
    [`SELECT "a""secret", 'a''secret'`, `SELECT ?, ?`],
    [`SELECT "secr`, `SELECT ?`],
    ['SELECT `secr', 'SELECT ?'],
    [`/*! secret */ SELECT 1 /*+ secret */`, ` SELECT ? `],
    [`SET PASSWORD FOR app = 'secret'`, `SET ?`],
    [`SET @token := "secret"`, `SET ?`],
    [`CREATE USER app IDENTIFIED BY 'secret'`, `CREATE USER app IDENTIFIED BY ?`],
    [`SELECT 0x736563726574, x'7365', _utf8mb4'secret'`, `SELECT ?, ?, _utf8mb4?`],
  ])('on MariaDB and MySQL: %s', (sql, masked) => {
    expect(maskLiterals(sql, 'innodb')).toBe(masked)
    expect(maskLiterals(sql, 'innodb')).not.toMatch(/secr/)
  })

  test('control: as on PostgreSQL some of them would be shown', () => {
    expect(maskLiterals('SELECT 1 # secret')).toMatch(/secret/)
    expect(maskLiterals('SELECT * FROM t WHERE a = "secret"')).toMatch(/secret/)
  })

  const holders = [
    '',
    'ALTER ROLE app ',
    'ALTER ROLE ALL IN DATABASE shop ',
    'ALTER USER "app" IN DATABASE shop ',
    'ALTER DATABASE shop ',
    'ALTER SYSTEM ',
    ...['FUNCTION', 'PROCEDURE', 'ROUTINE'].map(
      (kind) => `ALTER ${kind} public.f(int, text) STABLE `,
    ),
    'CREATE FUNCTION f(a int) RETURNS int LANGUAGE sql ',
    'CREATE OR REPLACE FUNCTION f(a int) RETURNS int LANGUAGE sql SECURITY DEFINER\n  ',
    'CREATE OR REPLACE PROCEDURE f() LANGUAGE plpgsql ',
  ]
  const settings = ['app.api_token', '"app"."api_token"', '"app.api token"', 'search_path']
  const values = ['secret', 'secret_1, secret', "'secret'", '"secret"', '$$secret$$']
  test.each(holders)('a setting that is kept: %sSET …', (holder) => {
    for (const setting of settings)
      for (const value of values)
        for (const to of [' = ', '=', ' TO ', ' to\n'])
          for (const [set, rest] of [
            ['SET', ''],
            ['set', `; SELECT 'secret'`],
            ['SET', ` SET other.setting${to}${value}`],
          ] as const) {
            for (const before of ['', 'BEGIN;\n ', '/* why */ ']) {
              const sql = `${before}${holder}${set} ${setting}${to}${value}${rest}`
              expect(maskLiterals(sql)).not.toMatch(/secret/)
            }
          }
  })

  test('what else is in such statements stays', () => {
    expect(maskLiterals('ALTER ROLE app SET app.api_token TO tok')).toBe(
      'ALTER ROLE app SET app.api_token ?',
    )
    const update = 'UPDATE t SET a = b'
    expect(maskLiterals(`ALTER ROLE app NOLOGIN; ${update}`)).toBe(
      `ALTER ROLE app NOLOGIN; ${update}`,
    )
    expect(maskLiterals('ALTER TABLE t SET SCHEMA archive')).toBe(
      'ALTER TABLE t SET SCHEMA archive',
    )
  })

  test('long texts take no long time', () => {
    for (const piece of [
      'ALTER ROLE a ',
      ';ALTER ROLE a',
      ' SET ',
      "'",
      '$',
      '/*',
      '"',
      "E'\\",
      '--',
      '$a$',
      '1',
      'a',
      "''",
      '/',
    ]) {
      const startedMs = performance.now()
      maskLiterals(piece.repeat(50_000))
      expect(performance.now() - startedMs).toBeLessThan(5_000)
    }
  })
})

describe('reports', () => {
  const redactor = new Redactor({ keys: true, queries: true }, Buffer.from('key'))
  /** Of any shape: an observer may be newer than the console, or somebody else's. */
  const shown = (report: string, value: object): string =>
    redactor.json(report as never, value as never)

  test('a field that nobody has looked at yet is left out', () => {
    const books = { books: [{ book: 'credits', surprise: 'secret', number: 4711 }] }
    expect(JSON.parse(shown('books', books))).toEqual({ books: [{ book: 'credits' }] })
    const leases = { leases: [{ inner: { deeper: ['secret'] }, token: { deep: 'secret' } }] }
    expect(JSON.parse(shown('leases', leases))).toEqual({ leases: [{}] })
    expect(JSON.parse(shown('leases', { more: ['secret'] }))).toEqual({})
  })

  test('control: with queries alone it stays', () => {
    const queries = new Redactor({ queries: true }, Buffer.from('key'))
    const books = { books: [{ book: 'credits', surprise: 'new' }] }
    expect(queries.json('books', books as never)).toBe(JSON.stringify(books))
  })

  test('numbers, truth values and absence stay', () => {
    const claims = { claims: [{ table: 'jobs', ready: 3, capped: false, dead: null }] }
    expect(JSON.parse(shown('claims', claims))).toEqual(claims)
  })

  test('a sentence that may hold a name is another one', () => {
    const advice = [
      { code: 'prepared-transaction', what: 'The prepared transaction "secret" …', fix: 'secret' },
      { code: 'xmin-held-back', what: 'because of a session of "secret"', fix: 'secret' },
      { code: 'of-tomorrow', what: 'secret', fix: 'secret' },
      { code: 'hold-leak', what: '3 holds are overdue', fix: 'Sweep.' },
    ]
    const text = shown('transactions', { advice })
    expect(text).not.toContain('secret')
    expect(text).toContain('3 holds are overdue')
    const findings = ['idle-in-transaction', 'slot-unused', 'tick-stuck', 'of-tomorrow'].map(
      (code) => ({ code, group: 'work', object: 'schedule secret', what: 'secret', fix: 'secret' }),
    )
    expect(shown('doctor', { findings })).not.toContain('secret')
  })

  test('masks are not the same in another console, so that they cannot be looked up', () => {
    const other = new Redactor({ keys: true }, Buffer.from('other'))
    const holds = { holds: [{ key: 'user-1' }] } as never
    expect(redactor.json('holds', holds)).not.toEqual(other.json('holds', holds))
    expect(redactor.json('holds', holds)).toEqual(redactor.json('holds', holds))
  })

  test('names of tables stay, numbers of foreign locks do not', () => {
    const lock = (kind: string, name: string, namespace?: string): string => {
      const waitsFor = { kind, name, namespace }
      const { session } = JSON.parse(shown('session', { session: { waitsFor } })) as {
        session: { waitsFor: { name: string } }
      }
      return session.waitsFor.name
    }
    expect(lock('row', 'row of public.orders')).toBe('row of public.orders')
    expect(lock('advisory', 'advisory 42 (not ours)')).not.toContain('42')
    // The end of a key may look like a count.
    expect(lock('named', 'cart:x +4915112345678', 'cart')).not.toContain('4915')
    expect(lock('named', 'cart:7 +2', 'cart')).toMatch(/^cart:•\w{6}$/)
    expect(lock('named', 'cart:a:b:c', 'cart')).toMatch(/^cart:•\w{6}$/)
    // A colon alone makes no namespace.
    expect(lock('named', 'anna:7', 'cart')).toMatch(/^•\w{6}$/)
  })

  test('a label keeps a namespace only if the locks of its session have it', () => {
    const label = (text: string, namespace?: string): string => {
      const session = { label: text, holds: [{ kind: 'named', name: 'x', namespace }] }
      const answer = JSON.parse(shown('session', { session })) as { session: { label: string } }
      return answer.session.label
    }
    expect(label('cart:7 +2', 'cart')).toMatch(/^cart:•\w{6}$/)
    expect(label('anna@example.com:7', 'cart')).toMatch(/^•\w{6}$/)
  })

  test('metrics: labels that users make up are masked, families of others are left out', () => {
    const text = [
      '# HELP holdfast_lease_events_total What happened.',
      'holdfast_lease_events_total{lease="a \\"secret\\", b",event="lost"} 3',
      'holdfast_lock_wait_seconds_bucket{lock="cart",le="+Inf"} 1',
      'holdfast_lock_wait_seconds_bucket{lock="cart:secret",le="+Inf"} 1',
      'holdfast_server_up 1',
      'app_logins{user="secret"} 1',
      '# app secret',
      '',
    ].join('\n')
    const masked = redactor.metrics(text)
    expect(masked).not.toContain('secret')
    expect(masked.split('\n').map((line) => line.replace(/•\w{6}/, '•'))).toEqual([
      '# HELP holdfast_lease_events_total What happened.',
      'holdfast_lease_events_total{lease="•",event="lost"} 3',
      'holdfast_lock_wait_seconds_bucket{lock="cart",le="+Inf"} 1',
      'holdfast_lock_wait_seconds_bucket{lock="cart:•",le="+Inf"} 1',
      'holdfast_server_up 1',
      '',
    ])
  })
})

test('only the redactor makes text that may be shown, and the history, which keeps what it made', () => {
  const folder = fileURLToPath(new URL('../../src', import.meta.url))
  const makers = globSync('**/*.ts', { cwd: folder })
    .filter((path) => readFileSync(join(folder, path), 'utf8').includes('as ShownText'))
    .toSorted()
  expect(makers).toEqual(['core/shown-text.ts', 'watch/history.ts', 'watch/redactor.ts'])
})
