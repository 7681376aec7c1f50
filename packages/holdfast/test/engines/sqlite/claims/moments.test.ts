import { describe, expect, test } from 'vitest'
import { eachSqlite } from '../support/each-sqlite.ts'
import { fill, ids, openOutbox, outboxTable, rowsOf } from '../support/outbox.ts'
import { value } from '../support/sqlite-clients.ts'

const hourMs = 3_600_000

/** How a column of moments is declared, and how applications write moments into it. */
const forms = [
  [
    'text as CURRENT_TIMESTAMP has it',
    'TEXT',
    (ms: number) => iso(ms).slice(0, 19).replace('T', ' '),
  ],
  ['text as JavaScript has it', 'TEXT', (ms: number) => iso(ms)],
  ['text with a zone', 'DATETIME', (ms: number) => `${iso(ms + 2 * hourMs).slice(0, 19)}+02:00`],
  ['milliseconds', 'INTEGER', (ms: number) => ms],
  ['seconds', 'INTEGER', (ms: number) => Math.floor(ms / 1_000)],
  ['seconds with a fraction', 'REAL', (ms: number) => ms / 1_000],
] as const

function iso(ms: number): string {
  return new Date(ms).toISOString()
}

function read(moment: unknown): number {
  if (typeof moment === 'number') return moment < 1e11 ? moment * 1_000 : moment
  const text = String(moment)
  return Date.parse(/[zZ+]/.test(text) ? text : `${text.replace(' ', 'T')}Z`)
}

describe.each(forms)('moments as %s', (_, declared, write) => {
  const due = declared === 'TEXT' || declared === 'DATETIME' ? 'CURRENT_TIMESTAMP' : '1'
  eachSqlite(outboxTable(declared, due), (place) => {
    const setDue = (id: number, ms: number): void =>
      void place.open().prepare('UPDATE outbox SET due = ? WHERE id = ?').run(write(ms), id)

    test('what is due is claimed, and nothing else', async () => {
      const { claims } = await openOutbox(place)
      fill(place, 4)
      const now = Date.now()
      setDue(1, now + hourMs)
      setDue(2, now - hourMs)
      setDue(3, now + 60_000)
      setDue(4, now - 2 * hourMs)
      expect(ids(await claims.claim(10))).toEqual([4, 2])
    })

    test('leases, retries and ends are written so that they are read again', async () => {
      const { claims } = await openOutbox(place)
      fill(place, 2)
      for (const id of [1, 2]) setDue(id, Date.now() - hourMs)
      const [a, b] = await claims.claim(2)
      if (!a || !b) throw new Error('two claims')
      const leftMs = read(rowsOf(place)[0]?.until) - Date.now()
      expect(leftMs).toBeGreaterThan(10_000)
      expect(leftMs).toBeLessThanOrEqual(30_001)
      await claims.fail(a, { retryInMs: hourMs })
      await claims.complete(b)
      const inMs = read(rowsOf(place)[0]?.due) - Date.now()
      expect(inMs).toBeGreaterThan(hourMs - 20_000)
      expect(inMs).toBeLessThanOrEqual(hourMs + 1_001)
      // In the form that the row had.
      const wrote = write(0)
      expect(typeof rowsOf(place)[0]?.due).toBe(typeof wrote)
      const endedMs =
        Date.now() - read(value(place.open(), 'SELECT ended FROM outbox WHERE id = 2'))
      expect(endedMs).toBeGreaterThanOrEqual(-1)
      expect(endedMs).toBeLessThan(20_000)
      expect(await claims.claim(2)).toEqual([])
      expect(await claims.recover()).toEqual({ freed: 0, dead: 0 })
    })
  })
})
