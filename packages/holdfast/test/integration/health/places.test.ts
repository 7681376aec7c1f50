/** What depends on where one looks from, and at which server. */
import {
  databaseOf,
  type PostgresServer,
  postgresVersions,
  sample,
  startPgBouncer,
  waitUntil,
} from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { examine, type HealthFinding } from '../../../src/health/index.ts'
import { type HealthyPlace, healthyPlace, healthyServer, openPlace } from './healthy-place.ts'

let server: PostgresServer
let place: HealthyPlace

beforeAll(async () => {
  server = await healthyServer()
  place = await healthyPlace(server)
})
afterAll(async () => {
  await place.close()
  await server.stop('immediate')
})

function at(url: string, max?: number): HealthyPlace {
  const other = openPlace(url, max)
  onTestFinished(() => other.close())
  return other
}

const codesOf = (findings: readonly HealthFinding[]): string[] => findings.map(({ code }) => code)

test.each(sample(postgresVersions))('nothing to find on PostgreSQL %i', async (version) => {
  await using fresh = await healthyServer(version)
  const healthy = await healthyPlace(fresh)
  try {
    expect(await healthy.look()).toEqual([])
    // The control: the same look sees what is wrong, and where it matters whether it does.
    await healthy.run('ALTER ROLE app CREATEROLE')
    expect(codesOf(await healthy.look())).toEqual(version === 15 ? ['role-creates-roles'] : [])
    await healthy.run('ALTER ROLE app NOCREATEROLE; GRANT pg_execute_server_program TO app')
    const [found] = await healthy.look()
    expect(found).toMatchObject({ code: 'role-writes-all' })
    await healthy.run((found as HealthFinding).fix)
    expect(await healthy.look()).toEqual([])
  } finally {
    await healthy.close()
  }
})

describe('in between', () => {
  test('a pooler is noted, and nothing else changes', async () => {
    await using bouncer = await startPgBouncer(server)
    const url = bouncer.url(databaseOf(place.url))
    expect(await at(url).look()).toEqual([
      {
        code: 'pooler',
        severity: 'note',
        group: 'connection',
        object: 'connection',
        what: expect.stringContaining('through a pooler'),
        fix: expect.stringContaining('direct URL'),
      },
    ])
  })

  test('a standby is an error, and everything else is still looked at', async () => {
    await using standby = await server.standby()
    const there = at(standby.url(databaseOf(place.url)))
    const found = await waitUntil('the standby has caught up', async () => {
      const seen = await there.look()
      return seen.length === 1 ? seen : undefined
    })
    expect(found).toMatchObject([{ code: 'standby', severity: 'error', object: 'server' }])
    expect(found[0]?.fix).toContain('primary')
  })

  test.each([
    [5_000, 'ahead of'],
    [-5_000, 'behind'],
  ])('a clock that is %i ms off is noted', async (offMs, side) => {
    const real = Date.now
    vi.spyOn(Date, 'now').mockImplementation(() => real() + offMs)
    onTestFinished(() => void vi.restoreAllMocks())
    const found = await place.look()
    expect(found).toMatchObject([{ code: 'clock-differs', severity: 'note' }])
    expect(found[0]?.what).toMatch(new RegExp(`^of this machine is [45] s ${side} the server's`))
    vi.restoreAllMocks()
    expect(await place.look()).toEqual([])
  })
})

describe('a server', () => {
  test('whose locks are stubs', async () => {
    const stubs = await healthyPlace(server)
    onTestFinished(() => stubs.close())
    expect(await stubs.look()).toEqual([])
    await stubs.pool.query(`
      ALTER FUNCTION pg_catalog.pg_advisory_xact_lock(bigint) RENAME TO real_lock;
      ALTER FUNCTION pg_catalog.pg_try_advisory_xact_lock(bigint) RENAME TO real_try_lock;
      CREATE FUNCTION pg_catalog.pg_advisory_xact_lock(bigint) RETURNS void
        LANGUAGE plpgsql AS 'BEGIN END';
      CREATE FUNCTION pg_catalog.pg_try_advisory_xact_lock(bigint) RETURNS boolean
        LANGUAGE sql AS 'SELECT true'`)
    expect(await stubs.look()).toMatchObject([{ code: 'locks-are-stubs', severity: 'error' }])
  })

  test('of a version that is too old, not released, or somebody else’s', async () => {
    const odd = await healthyPlace(server)
    onTestFinished(() => odd.close())
    const saying = async (version: string): Promise<readonly HealthFinding[]> => {
      await odd.pool.query(`CREATE OR REPLACE FUNCTION pg_catalog.version() RETURNS text
        LANGUAGE sql AS $$ SELECT '${version}' $$`)
      return await odd.look()
    }
    await odd.pool.query('ALTER FUNCTION pg_catalog.version() RENAME TO real_version')
    expect(await saying('PostgreSQL 18.1 on x86_64')).toEqual([])
    expect(await saying('PostgreSQL 14.9 on x86_64')).toMatchObject([
      { code: 'server-too-old', severity: 'error', what: expect.stringContaining('14.9') },
    ])
    for (const version of [
      'PostgreSQL 18beta1 on x86_64',
      'PostgreSQL 19.0 on x86_64',
      'PostgreSQL 15.2-YB-2025.1.0.0-b0 on x86_64',
      'CockroachDB CCL v25.1.0 (x86_64)',
    ]) {
      expect(await saying(version)).toMatchObject([{ code: 'server-untested', severity: 'note' }])
    }
  })

  test('that was started with wrong settings says so, and has few connections left', async () => {
    await using small = await healthyServer(undefined, {
      fsync: 'off',
      max_locks_per_transaction: '20',
      max_connections: '20',
    })
    const there = await healthyPlace(small)
    const clients = Array.from({ length: 16 }, () => new pg.Client({ connectionString: there.url }))
    try {
      const started = await there.look()
      expect(codesOf(started)).toEqual(['fsync-off', 'lock-table-small'])
      for (const { what, fix } of started) {
        expect(what).toContain("set on the server's command line")
        expect(fix).toMatch(/^Set \w+ to (on|64) on the command line that starts the server/)
      }
      await Promise.all(clients.map((client) => client.connect()))
      const full = await there.look()
      expect(codesOf(full)).toEqual(['fsync-off', 'lock-table-small', 'connections-short'])
      expect(full[2]?.what).toMatch(/^1[6-9] of the 17 connections/)
    } finally {
      await Promise.all(clients.map((client) => client.end().catch(() => undefined)))
      await there.close()
    }
    expect(await place.look()).toEqual([])
  })
})

describe('what cannot be looked at is said, and never passed over', () => {
  const as = (role: string, options = ''): string => {
    const url = new URL(place.url)
    url.username = role
    if (options !== '') url.searchParams.set('options', options)
    return url.href
  }
  const objects = (findings: readonly HealthFinding[]): string[] => {
    for (const { code, severity } of findings) {
      expect([code, severity]).toEqual(['not-checked', 'note'])
    }
    return findings.map(({ object }) => object)
  }

  test('by the application itself', async () => {
    const session = await place.pool.connect()
    onTestFinished(() => session.release())
    expect(objects(await at(as('app')).look())).toEqual(['schema', 'sessions'])
  })

  test('by a role that may nothing', async () => {
    await place.run('DROP ROLE IF EXISTS visitor; CREATE ROLE visitor LOGIN')
    const seen = objects(await at(as('visitor')).look())
    expect(seen).toEqual(expect.arrayContaining(['schema', 'holds', 'schedules', 'table work']))
    await place.run(
      'CREATE TABLE IF NOT EXISTS inbox (id int PRIMARY KEY, status text NOT NULL, claim_token uuid, lease_until timestamptz)',
    )
    const claims = await at(as('visitor')).look({ claims: [{ table: 'inbox' }] })
    expect(objects(claims)).toContain('table inbox')
  })

  test('with a pool of one connection', async () => {
    expect(objects(await at(place.url, 1).look())).toEqual(['server'])
  })

  test('of a role that was not named', async () => {
    expect(objects(await examine(place.driver))).toEqual(["the application's role"])
  })

  test('behind a value that the connection brings along', async () => {
    const url = new URL(place.url)
    url.searchParams.set('options', '-c synchronous_commit=off')
    expect(objects(await at(url.href).look())).toEqual(['setting synchronous_commit'])
    // As the role itself it is what counts.
    const own = await at(as('app', '-c synchronous_commit=off')).look()
    expect(own.filter(({ code }) => code !== 'not-checked')).toMatchObject([
      {
        code: 'commits-not-durable',
        what: expect.stringContaining('set by the connection'),
        fix: expect.stringMatching(/^Connect with synchronous_commit = on/),
      },
    ])
  })

  test('a name that cannot be is refused', async () => {
    await expect(examine(fromPg(place.pool), { schema: 'public' })).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    })
  })
})
