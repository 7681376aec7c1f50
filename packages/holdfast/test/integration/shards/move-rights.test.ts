/** What a role may not do is found before a move is written down, and told with what gives it. */
import { type PostgresServer, startPostgres, withClient } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { migrate } from '../../../src/schema/index.ts'
import { createMoves, initShards, type Moves } from '../../../src/shards/index.ts'
import { movable } from '../../support/moves-fixture.ts'

const owner = 'keeper'
const names = ['north', 'south'] as const
let server: PostgresServer
let pools: pg.Pool[]
let moves: Moves
/** Those of a superuser, on the same primaries. */
let admins: Moves

function movesAs(role: string): Moves {
  const places = names.map((name) => {
    const url = new URL(server.url(name))
    url.username = role
    const pool = new pg.Pool({ connectionString: url.href, max: 4 })
    pools.push(pool)
    return [name, { driver: fromPg(pool), connection: server.url(name), pool }] as const
  })
  return createMoves(Object.fromEntries(places))
}

beforeAll(async () => {
  server = await startPostgres({ settings: movable })
  pools = []
  await admin(`CREATE ROLE ${owner} LOGIN`)
  for (const name of names) await admin(`CREATE DATABASE ${name} OWNER ${owner}`)
  moves = movesAs(owner)
  const [north, south] = pools.map((pool) => fromPg(pool)) as [
    ReturnType<typeof fromPg>,
    ReturnType<typeof fromPg>,
  ]
  await migrate(north)
  await migrate(south)
  await initShards({ north, south })
  admins = movesAs('postgres')
})

afterAll(async () => {
  for (const pool of pools) await pool.end()
  await server.stop('immediate')
})

async function admin(sql: string, database?: string): Promise<void> {
  await withClient(server.url(database), (client) => client.query(sql))
}

const refused = (...missing: readonly string[]): object => ({
  code: 'SHARD_MOVE_REFUSED',
  details: { subject: missing.join('; ') },
})

const slots = `role ${owner} may not use replication slots (ALTER ROLE ${owner} REPLICATION)`
const subscriptions = `role ${owner} may not create subscriptions (before PostgreSQL 16 only superusers may)`
const deletes =
  `role ${owner} may not delete without triggers ` +
  `(GRANT SET ON PARAMETER session_replication_role TO ${owner})`

async function openMoves(): Promise<readonly string[]> {
  const { primaries } = await admins.status()
  return primaries.flatMap(({ moves: known }) =>
    known.filter(({ ended }) => !ended).map(({ id }) => id),
  )
}

test('everything that is missing, at both ends, and nothing is written down', async () => {
  const move = (): Promise<unknown> => moves.move({ buckets: [0], to: 'south' })
  await expect(move()).rejects.toMatchObject(
    refused(`north: ${slots}`, `north: ${deletes}`, `south: ${subscriptions}`, `south: ${deletes}`),
  )
  await admin(`ALTER ROLE ${owner} REPLICATION`)
  await admin(`GRANT SET ON PARAMETER session_replication_role TO ${owner}`)
  await expect(move()).rejects.toMatchObject(refused(`south: ${subscriptions}`))
  expect(await openMoves()).toEqual([])
  await admin(`ALTER ROLE ${owner} NOREPLICATION`)
  await admin(`REVOKE SET ON PARAMETER session_replication_role FROM ${owner}`)
})

test('tables of others, and a database in which it may not create', async () => {
  await admin(`ALTER ROLE ${owner} SUPERUSER`)
  for (const name of names) {
    await admin('CREATE TABLE public.note (bucket smallint PRIMARY KEY)', name)
    await admin(`GRANT ALL ON public.note TO ${owner}`, name)
  }
  const move = (): Promise<unknown> =>
    moves.move({ buckets: [0], to: 'south', tables: ['public.note'] })
  await admin(`ALTER ROLE ${owner} NOSUPERUSER`)
  await admin('ALTER DATABASE north OWNER TO postgres')
  await expect(move()).rejects.toMatchObject(
    refused(
      `north: role ${owner} may not create anything in the database (GRANT CREATE ON DATABASE north TO ${owner})`,
      `north: role ${owner} does not own public.note (GRANT postgres TO ${owner})`,
      `north: ${slots}`,
      `north: ${deletes}`,
      `south: role ${owner} does not own public.note (GRANT postgres TO ${owner})`,
      `south: ${subscriptions}`,
      `south: ${deletes}`,
    ),
  )
  await admin(`ALTER DATABASE north OWNER TO ${owner}`)
})

test('a move of somebody else is refused as well, to go on with and to undo; and repair', async () => {
  let id = ''
  const stopped = createMoves(
    Object.fromEntries(
      names.map((name, at) => [
        name,
        { driver: fromPg(pools[at + names.length] as pg.Pool), connection: server.url(name) },
      ]),
    ),
    {
      onProgress: (progress) => {
        ;({ id } = progress)
        if (progress.step === 'kept') throw new Error('the mover dies here')
      },
    },
  )
  await expect(stopped.move({ buckets: [2], to: 'south' })).rejects.toThrow('dies here')
  await expect(moves.resume(id)).rejects.toMatchObject({ code: 'SHARD_MOVE_REFUSED' })
  await expect(moves.undo(id)).rejects.toMatchObject(
    refused(`north: ${slots}`, `south: ${deletes}`),
  )
  await expect(moves.repair()).rejects.toMatchObject(
    refused(`north: ${deletes}`, `south: ${deletes}`),
  )
  expect(await openMoves()).toEqual([id, id])
  expect(await admins.resume(id)).toMatchObject({ moved: true, already: false })
  expect(await admins.resume(id)).toMatchObject({ moved: true, already: true })
})

test('a server without a free slot, and a connection string that cannot be read', async () => {
  const all = `SELECT pg_create_physical_replication_slot('taken_' || i)
    FROM generate_series(1, current_setting('max_replication_slots')::int) AS i`
  await admin(all)
  const move = admins.move({ buckets: [4], to: 'south' })
  await expect(move).rejects.toMatchObject(
    refused('north: no replication slot is free (raise max_replication_slots)'),
  )
  await admin('SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots')
  const [, , north, south] = pools as [pg.Pool, pg.Pool, pg.Pool, pg.Pool]
  const unreadable = createMoves({
    north: { driver: fromPg(north), connection: 'secret word' },
    south: { driver: fromPg(south), connection: server.url('south') },
  })
  await expect(unreadable.move({ buckets: [4], to: 'south' })).rejects.toMatchObject(
    refused('south: the connection string of the source cannot be read'),
  )
  expect(await openMoves()).toEqual([])
})
