import { describe, expect, test } from 'vitest'
import type { Executor } from '../../../src/core/driver.ts'
import type { Setting } from './setting.ts'

/** One statement, one answer: what every room relies on. */
export function statements<Tx>(at: Setting<Tx>): void {
  const places: Record<string, (use: (executor: Executor) => Promise<void>) => Promise<void>> = {
    alone: async (use) => await use(at.harness.driver.alone),
    'in a transaction of ours': async (use) =>
      await at.harness.driver.transaction(use, { scopes: [] }),
    "in the caller's transaction": async (use) =>
      await at.harness.own(async (tx) => await use(at.harness.driver.join(tx))),
  }

  describe.each(Object.entries(places))('a statement %s', (_, place) => {
    test('gives its rows: text, boolean, int4 and null', async () => {
      await place(async (executor) => {
        const rows = await executor.query({
          text: `SELECT $1::text AS word, $2::text::boolean AS truth, $3::text::int4 AS number,
                        $4::text AS nothing
                 UNION ALL SELECT 'second', false, 2, null ORDER BY number`,
          values: ['first', true, 1, null],
        })
        expect(rows.map((row) => ({ ...row }))).toEqual([
          { word: 'first', truth: true, number: 1, nothing: null },
          { word: 'second', truth: false, number: 2, nothing: null },
        ])
      })
    })

    test('binds values that are named twice, out of order, and past the ninth', async () => {
      await place(async (executor) => {
        const rows = await executor.query({
          text: `SELECT $2::text || $1::text || $2::text || $11::text AS joined,
                        $3::text || $4::text || $5::text || $6::text || $7::text || $8::text
                          || $9::text || $10::text AS rest`,
          values: ['a', 'b', 3, 4, 5, 6, 7, 8, 9, 10, 'k'],
        })
        expect(rows[0]?.['joined']).toBe('babk')
        expect(rows[0]?.['rest']).toBe('345678910')
      })
    })

    test.each(['{1,2}', '[1,2]', '{"a":1}', "it's $1", 'a\\b', '', '2026-01-01T00:00:00Z'])(
      'takes the value %j as it is',
      async (value) => {
        await place(async (executor) => {
          const rows = await executor.query({ text: 'SELECT $1::text AS given', values: [value] })
          expect(rows[0]?.['given']).toBe(value)
        })
      },
    )

    test('may be prepared under its name, again and again', async () => {
      await place(async (executor) => {
        for (const word of ['one', 'two', 'three']) {
          const [row] = await executor.query({
            text: 'SELECT $1::text AS word, pg_catalog.pg_backend_pid() AS pid',
            values: [word],
            name: 'holdfast_conformance',
          })
          expect(row?.['word']).toBe(word)
        }
      })
    })
  })

  test('a statement alone is outside any transaction', async () => {
    const { alone } = at.harness.driver
    await alone.query({
      text: "SELECT pg_catalog.set_config('holdfast.probe', $1::text, true) AS set",
      values: ['here'],
    })
    const [row] = await alone.query({
      text: "SELECT coalesce(pg_catalog.current_setting('holdfast.probe', true), '') AS left_behind",
      values: [],
    })
    expect(row?.['left_behind']).toBe('')
  })
}
