/**
 * The first fix that a report suggests is the one that people apply. Here it is applied, to flows of all sorts: to the
 * statement, to the schema, as a lock. After that the same flows have to be free of races.
 */
import { sample, withClient } from '@holdfast/testkit'
import type { PoolClient } from 'pg'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../holdfast/test/support/database.ts'
import type { Failure, Report } from '../../src/core/model.ts'
import { explore } from '../../src/explore.ts'
import { explainFailure } from '../../src/report/explain.ts'
import type { Fix } from '../../src/report/fix/fix.ts'
import type { Flow } from '../../src/run/options.ts'
import {
  computed,
  type Racy,
  schema,
  type Sent,
  upserts,
  values,
  type Who,
} from '../support/racy-flows.ts'
import { inserts } from '../support/racy-inserts.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) => client.query(schema))
})

const made: string[] = []
afterEach(async () => {
  const drop = made.splice(0).map((name) => `DROP INDEX ${name}`)
  if (drop.length > 0) await withClient(url, (client) => client.query(drop.join(';')))
})

/** The pieces of a flow that a fix may be put into. */
interface Changed {
  /** Before the first read. */
  readonly before?: string
  /** Behind the last read. */
  readonly behind?: string
  /** In the place of the first write. */
  readonly instead?: (sent: Sent, who: Who) => Sent
}

function flowOf(racy: Racy, who: Who, { before, behind = '', instead }: Changed): Flow {
  const body = async (client: PoolClient): Promise<void> => {
    if (before !== undefined) await client.query(before)
    const rows: Record<string, unknown>[][] = []
    for (const [at, read] of racy.reads.entries()) {
      const isLast = at === racy.reads.length - 1
      rows.push((await client.query(`${read}${isLast ? behind : ''}`)).rows)
    }
    const writes = racy.writes(rows.at(-1)?.[0], who, rows)
    if (writes === undefined) throw new Error('refused')
    for (const [at, sent] of writes.entries()) {
      const [text, ...parameters] = at === 0 && instead ? instead(sent, who) : sent
      const { rowCount } = await client.query(text, parameters)
      if (rowCount === 0) throw new Error('somebody was faster')
    }
  }
  return async ({ pool }) => {
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      await body(client)
      await client.query('COMMIT')
    } catch (error) {
      await client.query('ROLLBACK')
      throw error
    } finally {
      client.release()
    }
  }
}

function look(racy: Racy, changed: Changed = {}): Promise<Report> {
  return explore({
    url,
    onProgress: () => undefined,
    seed: async ({ query }) => {
      for (const text of racy.seed) await query(text)
    },
    flows: { a: flowOf(racy, 'a', changed), b: flowOf(racy, 'b', changed) },
  })
}

function fixesOf(report: Report): readonly Fix[] {
  return explainFailure(report, report.failure as Failure).fixes
}

/** What is done with the code of a fix. */
async function applied(racy: Racy, code: string): Promise<Changed> {
  const { fix, adapt = (text) => text } = racy
  if (fix === 'row lock') return { behind: ' FOR UPDATE' }
  if (fix === 'lock before') return { before: code }
  if (fix === 'name') return { before: `SELECT pg_advisory_xact_lock(hashtext('a name'))` }
  if (fix === 'index') {
    const [create = ''] = code.split(' -- ')
    const name = `made_${made.length}`
    await withClient(url, (client) => client.query(create.replace('INDEX ON', `INDEX ${name} ON`)))
    made.push(name)
    return {}
  }
  // A condition is added to what each sends; another SET stands for itself.
  const [, condition = ''] = code.split('WHERE id = 1')
  return {
    instead: ([text, ...rest], who) =>
      /SET (\w+) = (?:\w+\.)?\1/.test(code) || rest.length === 0
        ? [adapt(code, who)]
        : [`${text}${condition}`, ...rest],
  }
}

describe.each([
  ['a value that was read and is written', values],
  ['a value that the UPDATE computes', computed],
  ['an upsert', upserts],
  ['a look before an INSERT', inserts],
])('the first fix for %s', (_, all) => {
  test.each(sample(Object.entries(all)))('%s', async (_name, racy) => {
    const report = await look(racy)
    expect(report.verdict).toBe('race')
    const [first] = fixesOf(report)
    expect(first?.code ?? first?.text).toMatch(racy.code)
    const changed = await applied(racy, first?.code ?? '')
    const { verdict, failure } = await look(racy, changed)
    expect([verdict, failure?.message]).toEqual(['race-free', undefined])
  })
})
