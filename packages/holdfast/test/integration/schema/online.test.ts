/** R1: migration 0009 gives the unique keys of work their scope while everybody goes on working. */
import { waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createWork } from '../../../src/entries/claims.ts'
import { inspect, migrate } from '../../../src/schema/index.ts'
import { migrateFiles } from '../../../src/schema/migrate.ts'
import { planFiles } from '../../../src/schema/plan.ts'
import { ownFiles } from '../../../src/schema/schema-files.ts'
import { filesBefore0009, filesOfWork } from '../../support/before-0009.ts'
import { callerTransaction, pgFixture } from '../../support/pg-fixture.ts'
import { inTime } from '../../support/in-time.ts'

const fixture = pgFixture()

let schemas = 0
async function installedBefore(): Promise<string> {
  schemas += 1
  const schema = `before_${schemas}`
  await migrateFiles(fromPg(fixture.pool), filesBefore0009(), { schema })
  return schema
}

const queue = (schema: string) => createWork(fromPg(fixture.pool), { queue: 'digests', schema })

const upgrade = (schema: string) => migrateFiles(fromPg(fixture.pool), filesOfWork(), { schema })

const indexes = async (schema: string): Promise<string[]> => {
  const { rows } = await fixture.observer.query<{ name: string }>(
    `SELECT c.relname || CASE WHEN i.indisvalid THEN '' ELSE ' broken' END AS name
     FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
     WHERE i.indrelid = $1::regclass AND c.relname ~ 'unique|dead' ORDER BY 1`,
    [`${schema}.work`],
  )
  return rows.map(({ name }) => name)
}
const asItShouldBe = ['work_dead', 'work_unique_in_scope']

describe('R1: an upgrade', () => {
  test('says what it found, and gives each scope its own keys', async () => {
    const schema = await installedBefore()
    const work = queue(schema)
    const add = (scope: string, uniqueKey = 'daily'): Promise<{ added: boolean }> =>
      work.enqueue({ payload: 1, scope, uniqueKey })
    expect([
      await add('tenant-80'),
      await add('tenant-88'),
      await add('tenant-88', 'other'),
    ]).toEqual([true, false, true].map((added) => expect.objectContaining({ added }) as unknown))
    const { applied, notes } = await migrate(fromPg(fixture.pool), { schema })
    expect(applied).toContain('migrations/0009-work')
    expect(notes).toEqual([expect.stringMatching(/^work: 2 waiting .* 2 of them are in 1 places/)])
    expect(await add('tenant-88')).toMatchObject({ added: true })
    expect(await indexes(schema)).toEqual(asItShouldBe)
    expect(await inspect(fromPg(fixture.pool), { schema })).toEqual([])
    expect(await migrate(fromPg(fixture.pool), { schema })).toMatchObject({
      applied: [],
      notes: [],
    })
  })

  test('waits for an open writer, and keeps nobody else from writing meanwhile', async () => {
    const schema = await installedBefore()
    const work = queue(schema)
    const open = await callerTransaction(fixture)
    await work.enqueue(open, { payload: 1, uniqueKey: 'open' })
    const migrating = upgrade(schema)
    await waitUntil('the index is being built', async () => {
      const { rows } = await fixture.observer.query(
        `SELECT FROM pg_stat_progress_create_index WHERE relid = $1::regclass`,
        [`${schema}.work`],
      )
      return rows.length > 0 ? true : undefined
    })
    const began = performance.now()
    for (let at = 0; at < 20; at += 1) {
      expect(await work.enqueue({ payload: at, uniqueKey: `k${at}` })).toMatchObject({
        added: true,
      })
    }
    const claims = await work.claim(5)
    expect((await work.complete(claims)).kept).toHaveLength(5)
    inTime(performance.now() - began, 2_000)
    await open.query('COMMIT')
    await migrating
    expect(await indexes(schema)).toEqual(asItShouldBe)
  })

  test('control: run without the online part, a writer waits for the open one as well', async () => {
    const schema = await installedBefore()
    const work = queue(schema)
    const open = await callerTransaction(fixture)
    await work.enqueue(open, { payload: 1, uniqueKey: 'open' })
    const { online: _, ...files } = filesOfWork()
    // A shorter limit of the role's own holds; without one the migration has three seconds.
    const impatient = new pg.Pool({
      connectionString: fixture.database.directUrl,
      options: '-c lock_timeout=700ms',
    })
    onTestFinished(async () => await impatient.end())
    const migrating = migrateFiles(fromPg(impatient), files, { schema }).catch(
      (error: unknown) => error,
    )
    await waitUntil('the migration waits for the table', async () => {
      const { rows } = await fixture.observer.query(
        `SELECT FROM pg_locks WHERE relation = $1::regclass AND NOT granted AND mode = 'ShareLock'`,
        [`${schema}.work`],
      )
      return rows.length > 0 ? true : undefined
    })
    const blocked = await callerTransaction(fixture)
    await blocked.query(`SET LOCAL lock_timeout = '100ms'`)
    await expect(
      blocked.query(`DELETE FROM ${schema}.work WHERE queue = 'nobody'`),
    ).rejects.toMatchObject({ code: '55P03' })
    // By its own lock_timeout it gives up, and nothing is changed.
    expect(await migrating).toMatchObject({ code: '55P03' })
    expect(await indexes(schema)).toEqual(['work_unique'])
  })

  test('with old and new callers at work all the time: no error, no key twice in a scope', async () => {
    const schema = await installedBefore()
    const work = queue(schema)
    let going = true
    const scopes = ['tenant-80', 'tenant-88', 'tenant-1']
    const enqueue = async (caller: number): Promise<void> => {
      for (let at = 0; going; at += 1) {
        const scope = scopes[(at + caller) % scopes.length] as string
        const asked = ['b', 'a', 'c'].map((uniqueKey) => ({ payload: 1, scope, uniqueKey }))
        await work.enqueue(asked)
        const done = await work.claim(2)
        await work.complete(done)
      }
    }
    const callers = Promise.all([0, 1, 2, 3].map(enqueue))
    try {
      await upgrade(schema)
    } finally {
      going = false
    }
    await callers
    const { rows } = await fixture.observer.query(
      `SELECT scope, unique_key FROM ${schema}.work WHERE status <> 'dead'
       GROUP BY queue, scope, unique_key HAVING count(*) > 1`,
    )
    expect(rows).toEqual([])
    expect(await indexes(schema)).toEqual(asItShouldBe)
  })

  test('by 10 installers at once: none fails, one does it', async () => {
    const schema = await installedBefore()
    const results = await Promise.all(Array.from({ length: 10 }, () => upgrade(schema)))
    expect(results.filter(({ applied }) => applied.length > 0)).toHaveLength(1)
    expect(await indexes(schema)).toEqual(asItShouldBe)
  })

  test('goes on where one was ended in the middle of the build', async () => {
    const schema = await installedBefore()
    await fixture.observer.query(
      `INSERT INTO ${schema}.work (bucket, id, queue, scope, payload, run_at, enqueued_at, unique_key, max_attempts)
       SELECT 1, gen_random_uuid(), 'q', 's', '1', now(), now(), 'k', 1 FROM generate_series(1, 1)`,
    )
    // A build that fails leaves a broken index behind, as one that was killed does.
    await expect(
      fixture.observer.query(
        `CREATE UNIQUE INDEX CONCURRENTLY work_unique_in_scope ON ${schema}.work ((1 / (attempts)))`,
      ),
    ).rejects.toMatchObject({ code: '22012' })
    expect(await indexes(schema)).toEqual(['work_unique', 'work_unique_in_scope broken'])
    await upgrade(schema)
    expect(await indexes(schema)).toEqual(asItShouldBe)
  })

  test('by a plan: with the statements it names run first, it has nothing to build', async () => {
    const schema = await installedBefore()
    const script = planFiles(ownFiles(), { schema, from: '0008' })
    expect(script).toContain('--   CREATE UNIQUE INDEX CONCURRENTLY work_unique_in_scope')
    await fixture.observer.query(script)
    expect(await indexes(schema)).toEqual(asItShouldBe)
    expect(await inspect(fromPg(fixture.pool), { schema })).toEqual([])
    expect(planFiles(ownFiles(), { schema })).not.toContain('CONCURRENTLY work_unique_in_scope')
  })
})
