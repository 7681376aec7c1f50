import { barrier, rounds, sample, waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast } from '../../../src/index.ts'
import type { Verdict } from '../../../src/ledger/verdict.ts'
import { migrateFiles } from '../../../src/schema/migrate.ts'
import { ownFiles } from '../../../src/schema/schema-files.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { brokenInvariants } from '../../support/ledger-invariants.ts'
import { pidOf } from '../../support/pg-fixture.ts'

/**
 * A hold, and everybody who may end it at the same moment, each on a connection of its own: exactly
 * one does, the others are told how it ended, and nothing is given back twice.
 */
const fixture = ledgerFixture()

const limit = 100
const estimate = 30
const actual = 12

const contenders = ['sweep', 'settle', 'release', 'extend'] as const
type Contender = (typeof contenders)[number]
type Told = Partial<Record<Contender, string>>

interface Situation {
  /** The time of the hold is over, and nobody has noticed. */
  readonly due: boolean
  readonly late: 'book' | 'refuse'
}
const situations: readonly (readonly [string, Situation])[] = [
  ['an open hold', { due: false, late: 'book' }],
  ['a hold that is due', { due: true, late: 'refuse' }],
  ['a hold that is due, and may be settled late', { due: true, late: 'book' }],
]

interface Race extends Situation {
  readonly schema: string
  readonly key: string
  readonly holdId: string
}

const racers = {} as Record<Contender, { pool: pg.Pool; client: pg.PoolClient; pid: number }>

beforeAll(async () => {
  for (const contender of contenders) {
    const pool = new pg.Pool({ connectionString: fixture.database.directUrl, max: 1 })
    const client = await pool.connect()
    racers[contender] = { pool, client, pid: await pidOf(client) }
  }
})
afterAll(async () => {
  for (const { client, pool } of Object.values(racers)) {
    client.release()
    await pool.end()
  }
})

async function newRace(situation: Situation, schema = 'holdfast'): Promise<Race> {
  const key = fresh()
  const hf = fixture.create({ ledger: { schema } })
  const quota = hf.quota({ name: 'races', limit, per: 'lifetime' })
  const verdict = await quota.hold(key, estimate, { operationId: fresh(), ttl: '1 h' })
  const holdId = (verdict as Verdict<number> & { ok: true }).holdId as string
  if (situation.due) {
    await fixture.observer.query(
      `WITH held AS (
         UPDATE ${schema}.hold SET expires_at = clock_timestamp() WHERE id = $1::uuid
         RETURNING bucket, account, expires_at)
       UPDATE ${schema}.balance b SET due_at = held.expires_at FROM held
       WHERE b.bucket = held.bucket AND b.account = held.account`,
      [holdId.slice(4)],
    )
  }
  return { ...situation, schema, key, holdId }
}

/** One contender's move, in the transaction that its client has open. */
async function act(contender: Contender, race: Race): Promise<string> {
  const { client, pool } = racers[contender]
  const { schema, holdId, late } = race
  if (contender === 'sweep') {
    const { rows } = await client.query<{ sweep: string }>(`SELECT ${schema}.sweep(100)`)
    return rows[0]?.sweep.startsWith('0') ? 'nothing to do' : 'done'
  }
  const hf = createHoldfast(fromPg(pool), { ledger: { schema } })
  const quota = hf.quota({ name: 'races', limit, per: 'lifetime', late })
  const verdict = await (contender === 'settle'
    ? quota.settle(client, holdId, actual)
    : contender === 'release'
      ? quota.release(client, holdId)
      : quota.extend(client, holdId, '2 h'))
  return verdict.ok ? 'done' : `${verdict.reason} ${verdict.state}`
}

async function actAlone(contender: Contender, race: Race): Promise<string> {
  const { client } = racers[contender]
  await client.query('BEGIN')
  const told = await act(contender, race)
  await client.query('COMMIT')
  return told
}

/** Starts a contender in an open transaction; resolves once it waits for a lock or has its answer. */
async function queueUp(contender: Contender, race: Race): Promise<{ told: Promise<string> }> {
  const { client, pid } = racers[contender]
  await client.query('BEGIN')
  let answered = false
  const told = act(contender, race).finally(() => void (answered = true))
  await waitUntil(`${contender} waits or has its answer`, async () => {
    const { rows } = await fixture.observer.query<{ waits: boolean }>(
      'SELECT cardinality(pg_blocking_pids($1)) > 0 AS waits',
      [pid],
    )
    return answered || rows[0]?.waits || undefined
  })
  return { told }
}

/**
 * Everybody in this order, by force: each has acted and not yet committed when the next comes and
 * waits for it, the first for a lock on the balance. Only the sweeper, which waits for nobody, comes
 * when the one before it has committed.
 */
async function inOrder(order: readonly Contender[], race: Race): Promise<Told> {
  const told: Told = {}
  const gate = await fixture.observer.connect()
  await gate.query('BEGIN')
  await gate.query(
    `SELECT FROM ${race.schema}.balance b JOIN ${race.schema}.account a ON a.id = b.account
     WHERE a.key = $1 FOR NO KEY UPDATE OF b`,
    [race.key],
  )
  let before = gate
  for (const contender of order) {
    if (contender === 'sweep') await before.query('COMMIT')
    const queued = await queueUp(contender, race)
    if (contender !== 'sweep') await before.query('COMMIT')
    told[contender] = await queued.told
    before = racers[contender].client
  }
  await before.query('COMMIT')
  gate.release()
  return told
}

/** What everybody must be told if they come in this order, and how it must end. */
function expectedOf(order: readonly Contender[], { due, late }: Situation): [Told, string] {
  const told: Told = {}
  let state = 'open'
  let unnoticed = due
  for (const contender of order) {
    if (contender === 'sweep') {
      told.sweep = unnoticed ? 'done' : 'nothing to do'
    }
    // Whoever touches the account books what is due.
    if (unnoticed) state = 'expired'
    unnoticed = false
    if (contender === 'sweep') continue
    const may =
      state === 'open' || (contender === 'settle' && state === 'expired' && late === 'book')
    told[contender] = may ? 'done' : `ended ${state}`
    if (!may || contender === 'extend') continue
    state = contender === 'release' ? 'released' : state === 'open' ? 'settled' : 'settled-late'
  }
  return [told, state]
}

/** How the hold ended, and what became of the account. */
async function endOf({ schema, key }: Race): Promise<Record<string, unknown>> {
  const { rows } = await fixture.observer.query<Record<string, unknown>>(
    `SELECT (ARRAY['open', 'settled', 'released', 'expired', 'settled-late'])[h.state + 1] AS state,
       b.credited::int, b.debited::int, b.held::int,
       (SELECT sum(m.hold)::int FROM ${schema}.movement m WHERE m.account = a.id AND m.hold < 0) AS "returned"
     FROM ${schema}.account a JOIN ${schema}.balance b ON b.account = a.id
     JOIN ${schema}.hold h ON h.account = a.id WHERE a.key = $1`,
    [key],
  )
  return rows[0] as Record<string, unknown>
}

function expectedEnd(state: string): Record<string, unknown> {
  const debited = state.startsWith('settled') ? actual : 0
  return { state, credited: 0, debited, held: 0, returned: -estimate }
}

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length < 2) return [[...items]]
  return items.flatMap((item) =>
    permutations(items.filter((other) => other !== item)).map((rest) => [item, ...rest]),
  )
}
const orders = permutations(contenders)

describe.each(situations)('%s', (_, situation) => {
  test.each(sample(orders.map((order) => [order.join(', '), order] as const)))(
    '%s',
    async (__, order) => {
      const race = await newRace(situation)
      const [told, state] = expectedOf(order, situation)
      expect(await inOrder(order, race)).toEqual(told)
      expect(await endOf(race)).toEqual(expectedEnd(state))
    },
  )

  test('all at once, again and again: as if in some order', async () => {
    const ready = barrier(contenders.length)
    for (let round = 0; round < rounds(50); round += 1) {
      const race = await newRace(situation)
      const answers = await Promise.all(
        contenders.map(async (contender) => {
          await ready()
          return [contender, await actAlone(contender, race)] as const
        }),
      )
      const { sweep, ...told } = Object.fromEntries(answers) as Told
      const { state, ...end } = await endOf(race)
      const possible = orders
        .map((order) => expectedOf(order, situation))
        .filter(([wanted, ended]) => {
          // The sweeper skips an account that somebody works on.
          const { sweep: _swept, ...others } = wanted
          return ended === state && textOf(others) === textOf(told)
        })
      expect({ told, sweep, state, possible: possible.length > 0 }).toMatchObject({
        possible: true,
      })
      expect({ state, ...end }).toEqual(expectedEnd(state as string))
    }
  })
})

function textOf(told: Told): string {
  return contenders.map((contender) => told[contender]).join()
}

test('and nothing is broken', async () => {
  expect(await brokenInvariants(fixture.observer)).toEqual([])
})

describe('control: the same functions, but without the lock on the account', () => {
  const schema = 'unlocked'
  beforeAll(async () => {
    const files = ownFiles()
    const repeatables = files.repeatables.map((file) => ({
      ...file,
      text: file.text.replaceAll(/FOR NO KEY UPDATE( OF \w+)?( SKIP LOCKED)?/g, ''),
    }))
    await migrateFiles(fromPg(fixture.observer), { ...files, repeatables }, { schema })
  })

  test('two end the hold, and the books do not add up', async () => {
    const race = await newRace({ due: false, late: 'book' }, schema)
    const { client } = racers.settle
    await client.query('BEGIN')
    expect(await act('settle', race)).toBe('done')
    const released = await queueUp('release', race)
    await client.query('COMMIT')
    expect(await released.told).toBe('done')
    await racers.release.client.query('COMMIT')
    expect(await endOf(race)).not.toEqual(expectedEnd('settled'))
    expect(await brokenInvariants(fixture.observer, { schema })).not.toEqual([])
  })
})
