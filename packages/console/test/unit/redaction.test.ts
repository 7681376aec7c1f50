import { describe, expect, test } from 'vitest'
import { maskLiterals } from '../../src/watch/mask-literals.ts'
import { Redactor } from '../../src/watch/redactor.ts'

describe('values in SQL', () => {
  test.each([
    [`SELECT * FROM t WHERE a = 'secret'`, `SELECT * FROM t WHERE a = ?`],
    [`SELECT 'it''s secret', 2`, `SELECT ?, ?`],
    [`SELECT E'it\\'s secret', 1`, `SELECT ?, ?`],
    [`SELECT $$secret$$, $tag$secret $$ secret$tag$`, `SELECT ?, ?`],
    [`SELECT $1, t1.col2 FROM "t 1"`, `SELECT $1, t1.col2 FROM "t 1"`],
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

  test('long texts take no long time', () => {
    for (const piece of ["'", '$', '/*', '"', "E'\\", '--', '$a$', '1', 'a', "''", '/']) {
      const startedMs = performance.now()
      maskLiterals(piece.repeat(50_000))
      expect(performance.now() - startedMs).toBeLessThan(2_000)
    }
  })
})

describe('reports', () => {
  const redactor = new Redactor({ keys: true, queries: true }, Buffer.from('key'))

  test('a field that nobody has looked at yet is masked', () => {
    const masked = redactor.masked('books', { books: [{ book: 'credits', surprise: 'secret' }] })
    expect(masked).toEqual({ books: [{ book: 'credits', surprise: expect.stringMatching(/^•/) }] })
    const deep = redactor.masked('leases', { leases: [{ inner: { deeper: ['secret'] } }] })
    expect(JSON.stringify(deep)).not.toContain('secret')
  })

  test('numbers, truth values and absence stay', () => {
    const claims = { claims: [{ table: 'jobs', ready: 3, capped: false, oldest: null }] }
    expect(redactor.masked('claims', claims)).toEqual(claims)
  })

  test('a name that is masked is masked in advice too', () => {
    const session = {
      label: 'cart:secret',
      advice: [{ code: 'x', what: 'cart:secret waits', fix: '' }],
    }
    const masked = redactor.masked('session', { session })
    expect(JSON.stringify(masked)).not.toContain('secret')
    expect(masked.session.advice[0]?.what).toBe(`${masked.session.label} waits`)
  })

  test('masks are not the same in another console, so that they cannot be looked up', () => {
    const other = new Redactor({ keys: true }, Buffer.from('other'))
    const holds = { holds: [{ key: 'user-1' }] }
    expect(redactor.masked('holds', holds)).not.toEqual(other.masked('holds', holds))
    expect(redactor.masked('holds', holds)).toEqual(redactor.masked('holds', holds))
  })

  test('names of tables stay, numbers of foreign locks do not', () => {
    const lock = (kind: string, name: string): string => {
      const session = { waitsFor: { kind, name } }
      return redactor.masked('session', { session }).session.waitsFor.name
    }
    expect(lock('row', 'row of public.orders')).toBe('row of public.orders')
    expect(lock('advisory', 'advisory 42 (not ours)')).not.toContain('42')
    expect(lock('named', 'cart:7 +2')).toMatch(/^cart:•\w{6} \+2$/)
    expect(lock('named', 'cart:a:b:c')).toMatch(/^cart:•\w{6}$/)
  })
})
