/** A row is the same row in every spelling of its key, and is called by its key. */
import { withClient } from '@holdfast/testkit'
import { beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../holdfast/test/support/database.ts'
import type { Failure, Report } from '../../src/core/model.ts'
import { explore } from '../../src/explore.ts'
import { differenceOf, faultOf } from '../../src/report/difference.ts'
import { explainFailure } from '../../src/report/explain.ts'
import type { Flow } from '../../src/run/options.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
      CREATE TABLE by_int (id int PRIMARY KEY, n int);
      CREATE TABLE by_uuid (id uuid PRIMARY KEY, n int);
      CREATE TABLE by_text (id text PRIMARY KEY, n int);
      CREATE TABLE by_name (id text COLLATE any_case PRIMARY KEY, n int);
      CREATE TABLE invoice (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), customer_id int, number int)`),
  )
})

const uuid = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa'
const other = 'bbbbbbbb-aaaa-4aaa-8aaa-aaaaaaaaaaaa'

function look(seed: readonly string[], a: Flow, b: Flow): Promise<Report> {
  return explore({
    url,
    onProgress: () => undefined,
    seed: async ({ query }) => {
      await query('TRUNCATE by_int, by_uuid, by_text, by_name, invoice')
      for (const text of seed) await query(text)
    },
    flows: { a, b },
  })
}

function fault(report: Report): string {
  const failure = report.failure as Failure
  return faultOf(failure, differenceOf(failure, report))
}

/** Reads a row and writes one, each by a key in some spelling. */
const copy =
  (table: string, from: string, to: string, by: number): Flow =>
  async ({ pool }) => {
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      const { rows } = await client.query(`SELECT n FROM ${table} WHERE id = $1`, [from])
      await client.query(`UPDATE ${table} SET n = $2 WHERE id = $1`, [to, rows[0].n + by])
      await client.query('COMMIT')
    } finally {
      client.release()
    }
  }

describe('one row', () => {
  test.each([
    ['by_int', '1', '01'],
    ['by_int', '1', ' 1 '],
    ['by_uuid', uuid, `{${uuid.toUpperCase()}}`],
    ['by_uuid', uuid, uuid.replaceAll('-', '')],
    ['by_text', 'Ann', 'Ann'],
    ['by_name', 'ann', 'ANN'],
  ])('of %s is no other: %s, %s', async (table, one, same) => {
    const seed = [`INSERT INTO ${table} VALUES ('${one}', 0)`]
    const report = await look(seed, copy(table, one, one, 1), copy(table, same, same, 2))
    const { anomaly, why } = explainFailure(report, report.failure as Failure)
    expect(anomaly).toBe('lost update')
    expect(why).not.toContain('different rows')
  })
})

test.each([
  ['by_int', '1', '2'],
  ['by_uuid', uuid, other],
  ['by_text', 'Ann', 'ann'],
])('two rows of %s are two: %s, %s', async (table, one, two) => {
  const seed = [`INSERT INTO ${table} VALUES ('${one}', 5), ('${two}', 9)`]
  const report = await look(seed, copy(table, one, two, 1), copy(table, two, one, 2))
  const { anomaly, why } = explainFailure(report, report.failure as Failure)
  expect(anomaly).toBe('write skew')
  expect(why).toContain('in different rows')
})

describe('a row whose key is drawn anew', () => {
  test('is called by the column that tells it apart', async () => {
    const next =
      (customer: number): Flow =>
      async ({ pool }) => {
        const { rows } = await pool.query('SELECT coalesce(max(number), 0) + 1 AS n FROM invoice')
        await pool.query('INSERT INTO invoice (customer_id, number) VALUES ($1, $2)', [
          customer,
          rows[0].n,
        ])
      }
    expect(fault(await look([], next(1), next(2)))).toMatch(
      /^invoice with customer_id \d: number is 1/,
    )
  })
})

test('a row is called by its key', async () => {
  const report = await look(
    [`INSERT INTO by_int VALUES (1, 0)`],
    copy('by_int', '1', '1', 1),
    copy('by_int', '1', '1', 2),
  )
  expect(fault(report)).toMatch(/^by_int 1: n is [12]; after every serial order it is 3/)
})
