import { withClient } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { createRunner, type LiveRunner } from '../../../src/run/create-runner.ts'
import { instrument } from '../../../src/run/connection/instrument.ts'
import type { RunnerOptions } from '../../../src/run/options.ts'
import { lines, script } from '../../support/script.ts'

instrument(pg)

let url: string
// What the code under test has as globals of its modules.
let pool: pg.Pool
let narrow: pg.Pool
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) => client.query('CREATE TABLE claims (key text, who text)'))
  pool = new pg.Pool({ connectionString: url })
  narrow = new pg.Pool({ connectionString: url, max: 1 })
  // Used before any run: what passes then is nobody's.
  await pool.query('SELECT 1')
})
afterAll(async () => {
  await pool.end()
  await narrow.end()
})

let runner: LiveRunner | undefined
afterEach(async () => {
  await runner?.close()
  runner = undefined
})

async function start(flows: RunnerOptions['flows'], hangMs: number = 5000): Promise<LiveRunner> {
  runner = await createRunner({
    url,
    flows,
    seed: ({ query }) => query('TRUNCATE claims'),
    limits: { hangMs },
  })
  return runner
}

const flows = ['alice', 'bob']

async function claim(on: pg.Pool, who: string): Promise<string> {
  const client = await on.connect()
  try {
    await client.query('BEGIN')
    const { rowCount } = await client.query(`SELECT FROM claims WHERE key = 'k'`)
    if (rowCount === 0) await client.query(`INSERT INTO claims VALUES ('k', $1)`, [who])
    await client.query('COMMIT')
    return rowCount === 0 ? 'mine' : 'taken'
  } finally {
    client.release()
  }
}

describe('a pool that is a global of a module', () => {
  test('statements belong to the flow that sends them', async () => {
    const both = await start({
      alice: () => claim(pool, 'alice'),
      bob: () => claim(pool, 'bob'),
    })
    for (let time = 0; time < 5; time += 1) {
      const race = await both.run(script(flows, 'alice alice bob bob alice bob'))
      expect(race.outcomes).toMatchObject([{ value: '"mine"' }, { value: '"mine"' }])
      const serial = await both.run(script(flows, 'bob bob bob bob'))
      expect(serial.outcomes).toMatchObject([{ value: '"taken"' }, { value: '"mine"' }])
      expect(serial.notes).toEqual([])
    }
  })

  test('pool.query by itself, on one connection for both', async () => {
    const add = (who: string) => () => narrow.query('INSERT INTO claims VALUES ($1, $1)', [who])
    const both = await start({ alice: add('alice'), bob: add('bob') })
    const run = await both.run(script(flows, 'bob'))
    // The pool has one connection, so that the second waits in the application until it is free.
    expect(lines(run, flows)).toHaveLength(4)
    expect(new Set(run.steps.map(({ flow }) => flow))).toEqual(new Set([0, 1]))
    expect(run.uncontrolled).toBeUndefined()
  })

  test('further rows of a portal, which the client asks for by itself, belong to the flow too', async () => {
    const slowly = async (who: string): Promise<number> => {
      const client = await pool.connect()
      try {
        await client.query('BEGIN')
        // One row at a time; each is asked for when the one before has come.
        const byOne = { text: 'SELECT i FROM generate_series(1, 3) AS i', rows: 1 }
        const { rows } = await client.query(byOne)
        await client.query('INSERT INTO claims VALUES ($1, $1)', [who])
        await client.query('COMMIT')
        return rows.length
      } finally {
        client.release()
      }
    }
    const both = await start({ alice: () => slowly('alice'), bob: () => slowly('bob') })
    for (const order of ['alice bob alice bob alice bob alice bob', 'bob bob bob bob']) {
      const run = await both.run(script(flows, order))
      expect(run.outcomes).toMatchObject([{ value: '3' }, { value: '3' }])
      const read = (who: number): number =>
        run.steps.filter(
          ({ flow, statements }) => flow === who && /series/.test(statements[0] ?? ''),
        ).length
      expect(read(0)).toBeGreaterThan(1)
      expect(read(1)).toBe(read(0))
      expect(run.uncontrolled).toBeUndefined()
      expect(run.notes).toEqual([])
    }
  })

  test('a flow that crashes leaves the pool usable', async () => {
    const both = await start({
      alice: () => claim(pool, 'alice'),
      bob: () => claim(pool, 'bob'),
    })
    for (let time = 0; time < 12; time += 1) {
      const run = await both.run(script(flows, 'alice alice alice alice!'))
      expect(run.outcomes).toMatchObject([{ kind: 'crashed' }, { value: '"mine"' }])
    }
    expect(pool.totalCount).toBeLessThanOrEqual(2)
  })
})
