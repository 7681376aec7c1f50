/** What is said about a table before anything goes wrong. */
import { describe, expect, test } from 'vitest'
import { claimsFixture, optionsFor } from '../../support/claims-fixture.ts'

const fixture = claimsFixture()

describe('check', () => {
  test('a table with its indexes is fine, also an empty one', async () => {
    expect(await (await fixture.table(0)).claims.check()).toEqual([])
    expect(await (await fixture.table(3)).claims.check()).toEqual([])
  })

  test('names what is missing', async () => {
    const { name } = await fixture.table(0)
    const table = async (options: object): Promise<string[]> =>
      (await fixture.hf.claims({ ...optionsFor(name), ...options }).check()).map(
        ({ code, object }) => `${code} ${object}`,
      )
    expect(await table({ table: 'nowhere' })).toEqual(['table-missing table nowhere'])
    expect(await table({ columns: { status: 'state', token: 'x' } })).toEqual([
      `column-missing column ${name}.x`,
      `column-missing column ${name}.lease_until`,
    ])
    expect(await table({ key: 'tenant' })).toContain(`key-not-unique table ${name}`)
    await fixture.observer.query(
      `ALTER TABLE ${name} ALTER due DROP NOT NULL, ALTER until TYPE timestamp`,
    )
    expect(await table({})).toEqual([
      `column-nullable column ${name}.due`,
      `column-type column ${name}.until`,
    ])
  })

  test('S22: a key that no row can be claimed by is told, and a worker does not begin', async () => {
    const { name } = await fixture.table(2)
    await fixture.observer.query(`
      CREATE TYPE ${name}_pair AS (a int, b text);
      CREATE DOMAIN ${name}_list AS int[];
      ALTER TABLE ${name} ADD listed int[] UNIQUE, ADD domained ${name}_list UNIQUE, ADD paired ${name}_pair UNIQUE;
      UPDATE ${name} SET listed = ARRAY[id, id], domained = ARRAY[id], paired = ROW(id, 'x"y')`)
    for (const key of ['listed', 'domained', 'paired']) {
      const claims = fixture.hf.claims({ ...optionsFor(name), key })
      const [finding] = await claims.check()
      expect(finding).toMatchObject({ code: 'key-type', object: `column ${name}.${key}` })
      const running = claims.run({ handler: async () => undefined })
      await expect(running).rejects.toMatchObject({ code: 'CLAIM_TABLE_UNFIT' })
    }
    const turns = fixture.hf.claims({ ...optionsFor(name), perKey: { column: 'listed', limit: 1 } })
    expect((await turns.check()).map(({ code }) => code)).toContain('key-type')
  })

  test('S22: a column whose name begins like ours is told, and rows can be claimed without it', async () => {
    const { name } = await fixture.table(2)
    await fixture.observer.query(
      `ALTER TABLE ${name} ADD "#at" int DEFAULT 7, ADD "odd ""name" int UNIQUE, ADD "__proto__" text;
       UPDATE ${name} SET "odd ""name" = id`,
    )
    const [finding] = await fixture.hf.claims(optionsFor(name)).check()
    expect(finding).toMatchObject({ code: 'column-name', object: `column ${name}.#at` })
    const claims = fixture.hf.claims<{ id: string }>({
      ...optionsFor(name),
      key: 'odd "name',
      select: ['id'],
    })
    const codes = (await claims.check()).map(({ code }) => code)
    expect(codes).not.toContain('column-name')
    const claimed = await claims.claim(2)
    expect((await claims.complete(claimed)).kept).toHaveLength(2)
  })

  test('says which index, and that index is then enough', async () => {
    const { name } = await fixture.table(0)
    await fixture.observer.query(`DROP INDEX ${name}_due_id_idx, ${name}_until_idx`)
    const claims = fixture.hf.claims({
      ...optionsFor(name),
      columns: { ...optionsFor(name).columns, priority: { column: 'rank', first: 'largest' } },
      where: { tenant: "o'neil", why: null },
      perKey: { column: 'owner', limit: 2 },
      select: ['id'],
    })
    await fixture.observer.query(`ALTER TABLE ${name} ALTER owner SET NOT NULL`)
    const findings = await claims.check()
    expect(findings.map(({ fix }) => fix)).toEqual([
      `CREATE INDEX CONCURRENTLY ON "${name}" ("tenant", "owner", "rank" DESC, "due", "id") WHERE "state" = 'new' AND "why" IS NULL;`,
      `CREATE INDEX CONCURRENTLY ON "${name}" ("tenant", "until") WHERE "state" = 'busy' AND "why" IS NULL;`,
      `CREATE INDEX CONCURRENTLY ON "${name}" ("tenant", "owner") WHERE "state" = 'busy' AND "why" IS NULL;`,
    ])
    for (const { fix } of findings) await fixture.observer.query(fix)
    expect(await claims.check()).toEqual([])
  })

  test.each([
    ['another order', "(id, due) WHERE state = 'new'"],
    ['no tie-breaker', "(due) WHERE state = 'new'"],
    ['another predicate', "(due, id) WHERE state = 'busy'"],
    ['a narrower predicate', "(due, id) WHERE state = 'new' AND rank > 0"],
    ['no predicate', '(due, id)'],
    ['the wrong direction', "(due DESC, id) WHERE state = 'new'"],
  ])('an index with %s is not enough', async (_, definition) => {
    const { name, claims } = await fixture.table(50)
    await fixture.observer.query(
      `DROP INDEX ${name}_due_id_idx; CREATE INDEX ON ${name} ${definition}`,
    )
    expect((await claims.check()).map(({ code }) => code)).toEqual(['index-missing'])
  })

  test.each([
    ['the status as first column instead of a predicate', '(state, due, id)'],
    ['more columns behind', "(due, id, rank) WHERE state = 'new'"],
    ['a wider predicate that has the status in front', "(state, due, id) WHERE state <> 'ok'"],
  ])('an index with %s is', async (_, definition) => {
    const { name, claims } = await fixture.table(50)
    await fixture.observer.query(
      `DROP INDEX ${name}_due_id_idx; CREATE INDEX ON ${name} ${definition}`,
    )
    expect(await claims.check()).toEqual([])
  })

  test('a worker does not start on a table that cannot work, and does on a slow one', async () => {
    const { name, claims } = await fixture.table(1)
    const broken = fixture.hf.claims({ ...optionsFor(name), perKey: { column: 'owner' } })
    await expect(broken.run({ handler: async () => 1 })).rejects.toMatchObject({
      code: 'CLAIM_TABLE_UNFIT',
      details: { findings: [{ code: 'column-nullable' }] },
    })
    await fixture.observer.query(`DROP INDEX ${name}_due_id_idx`)
    const worker = await claims.run({ handler: async () => 1 })
    await worker.drain()
  })
})
