/** Logical replication, and who may use it, is what versions of PostgreSQL differ in. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  ends,
  type PostgresServer,
  postgresVersions,
  startPostgres,
  waitUntil,
  withClient,
} from '@holdfast/testkit'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { bucketOf } from '../../src/core/bucket.ts'
import { fromPg } from '../../src/drivers/pg.ts'
import { createHoldfast } from '../../src/index.ts'
import { migrate } from '../../src/schema/index.ts'
import { createMoves, initShards, shardedDriver } from '../../src/shards/index.ts'
import { fresh } from '../support/ledger-fixture.ts'
import { contentsOf, leftovers, movable, movesFixture, ownersOf } from '../support/moves-fixture.ts'
import { scopeIn } from '../support/shards-fixture.ts'

const calls = { name: 'calls', limit: 1_000, per: 'lifetime' } as const

describe.each(ends(postgresVersions))('PostgreSQL %i', (version) => {
  const fixture = movesFixture('', version)

  test('a bucket goes over and back, and nothing is left behind', async () => {
    const { hf, pools, moves } = fixture
    const scope = scopeIn('north')
    const bucket = bucketOf(scope)
    const quota = hf.quota(calls)
    for (const [to, from] of [
      ['south', 'north'],
      ['north', 'south'],
    ] as const) {
      await quota.consume(scope, 1, { operationId: fresh() })
      const before = await contentsOf(pools[from], bucket)
      const [outcome] = await moves().move({ buckets: [bucket], to })
      expect(outcome).toMatchObject({ moved: true, from, to })
      expect(await contentsOf(pools[to], bucket)).toEqual(before)
      expect(await contentsOf(pools[from], bucket)).toEqual({})
      expect(await leftovers(fixture)).toEqual([])
    }
    expect(await quota.peek(scope)).toMatchObject({ used: 2 })
  })

  test('a move can be undone while a transaction at the source keeps its copy from beginning', async () => {
    const { pools } = fixture
    const bucket = bucketOf(scopeIn('north'))
    const writer = await pools.north.connect()
    const moves = fixture.moves({
      async onProgress({ id, step }) {
        if (step === 'cleared') await writer.query('BEGIN; SELECT pg_current_xact_id()')
        if (step !== 'subscribed') return
        await waitUntil('a sender waits for the writer', async () => {
          const { rowCount } = await pools.north.query(
            `SELECT FROM pg_stat_activity WHERE backend_type = 'walsender' AND wait_event = 'transactionid'`,
          )
          return (rowCount ?? 0) > 0 || undefined
        })
        await fixture.moves().undo(id)
      },
    })
    try {
      await expect(moves.move({ buckets: [bucket], to: 'south' })).rejects.toMatchObject({
        code: 'SHARD_MOVE_OVERTAKEN',
      })
      expect(await leftovers(fixture)).toEqual([])
      expect(await ownersOf(fixture, bucket)).toEqual(['north'])
    } finally {
      await writer.query('ROLLBACK')
      writer.release()
    }
  })
})

/** Logs in with a password, owns its databases, and is no superuser. */
const owner = { name: 'mover', password: 'of-the-mover' }

async function serverWithOwner(version: 16 | 17 | 18): Promise<PostgresServer> {
  const server = await startPostgres({ version, settings: movable })
  onTestFinished(() => server.stop('immediate'))
  const rules = join(server.dataDir, 'pg_hba.conf')
  const asked = `host all ${owner.name} 127.0.0.1/32 scram-sha-256`
  writeFileSync(rules, `${asked}\n${readFileSync(rules, 'utf8')}`)
  await withClient(server.url(), async (admin) => {
    await admin.query('SELECT pg_reload_conf()')
    await admin.query(`CREATE ROLE ${owner.name} LOGIN REPLICATION PASSWORD '${owner.password}'`)
    await admin.query(`GRANT pg_create_subscription TO ${owner.name}`)
    await admin.query(`GRANT SET ON PARAMETER session_replication_role TO ${owner.name}`)
    for (const name of ['north', 'south']) {
      await admin.query(`CREATE DATABASE ${name} OWNER ${owner.name}`)
    }
  })
  return server
}

test.each(ends([16, 17, 18] as const))(
  'PostgreSQL %i: the owner of the schema moves, and undoes, without being a superuser',
  async (version) => {
    const server = await serverWithOwner(version)
    const { name: user, password } = owner
    const place = (database: string) => {
      const connection = `postgres://${user}:${password}@${server.host}:${server.port}/${database}`
      const pool = new pg.Pool({ connectionString: connection, max: 4 })
      onTestFinished(() => pool.end())
      return { pool, connection, driver: fromPg(pool) }
    }
    const [north, south] = [place('north'), place('south')]
    for (const { driver } of [north, south]) await migrate(driver)
    const drivers = { north: north.driver, south: south.driver }
    await initShards(drivers)
    const quota = createHoldfast(shardedDriver(drivers)).quota(calls)
    const scope = scopeIn('north')
    await quota.consume(scope, 1, { operationId: fresh() })
    const refused = async (connection: string, why: string): Promise<void> => {
      const moves = createMoves({ north: { ...north, connection }, south })
      await expect(moves.move({ buckets: [bucketOf(scope)], to: 'south' })).rejects.toMatchObject({
        code: 'SHARD_MOVE_REFUSED',
        details: { subject: expect.stringContaining(why) as string },
      })
      expect((await north.pool.query('SELECT FROM holdfast.shard_move')).rows).toEqual([])
    }
    await refused(north.connection.replace(`:${password}`, ''), 'has no password')
    const admin = async (sql: string): Promise<unknown> =>
      await withClient(server.url(), (client) => client.query(sql))
    await admin(`REVOKE pg_create_subscription FROM ${user}`)
    await refused(north.connection, `(GRANT pg_create_subscription TO ${user})`)
    await admin(`GRANT pg_create_subscription TO ${user}`)
    const moves = createMoves({ north, south })
    const undoing = createMoves(
      { north, south },
      {
        async onProgress({ id, step }) {
          if (step === 'subscribed') await moves.undo(id)
        },
      },
    )
    await expect(undoing.move({ buckets: [bucketOf(scope)], to: 'south' })).rejects.toMatchObject({
      code: 'SHARD_MOVE_OVERTAKEN',
    })
    const [outcome] = await moves.move({ buckets: [bucketOf(scope)], to: 'south' })
    expect(outcome).toMatchObject({ moved: true })
    expect(await quota.consume(scope, 1, { operationId: fresh() })).toMatchObject({ ok: true })
    expect((await south.pool.query('SELECT FROM pg_subscription')).rows).toEqual([])
    expect((await north.pool.query('SELECT FROM pg_replication_slots')).rows).toEqual([])
  },
)
