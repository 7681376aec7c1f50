import { waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import {
  type Branch,
  createObserver,
  lockBranches,
  type LockTree,
  type Observer,
} from '../../../src/observe/index.ts'
import { migrate } from '../../../src/schema/index.ts'
import { type TestDatabase, testDatabase } from '../../support/database.ts'
import {
  billingKeys,
  cast,
  type Role,
  type StagedIncident,
  stagedNotes,
  stagedWaits,
  stageIncident,
} from '../../support/staged-incident.ts'

/** What on-call people are promised: seen within two seconds of happening. */
const seenWithinMs = 2_000

let database: TestDatabase
let pool: pg.Pool
let direct: pg.Pool
let incident: StagedIncident
let observer: Observer

beforeAll(async () => {
  database = await testDatabase()
  pool = new pg.Pool({ connectionString: database.url, max: 2, application_name: 'observer' })
  direct = new pg.Pool({ connectionString: database.directUrl, max: 2 })
  await migrate(fromPg(direct))
  await direct.query("SELECT holdfast.note_locks($1, '[]')", [JSON.stringify(stagedNotes())])
  observer = createObserver(fromPg(pool))
  incident = await stageIncident(database.directUrl)
})

afterAll(async () => {
  await incident.end()
  await pool.end()
  await direct.end()
})

/** The tree by role, in the words of the stage. */
function byRole(tree: LockTree): Record<string, unknown> {
  const role = (pid: number): Role | number => incident.roleOf(pid) ?? pid
  return Object.fromEntries(
    tree.sessions.map((session) => [
      role(session.pid),
      {
        ...(session.waitsFor === undefined ? {} : { waitsFor: session.waitsFor.name }),
        hard: session.blockedBy.filter(({ kind }) => kind === 'hard').map(({ pid }) => role(pid)),
        soft: session.blockedBy.filter(({ kind }) => kind === 'soft').map(({ pid }) => role(pid)),
      },
    ]),
  )
}

const truth = { billing: { hard: [], soft: [] }, ...stagedWaits }

describe('an incident of twelve sessions', () => {
  test('is seen exactly, within two seconds of happening', async () => {
    const tree = await waitUntil('all are seen', async () => {
      const seen = await observer.locks()
      return seen.sessions.length >= cast.length ? seen : undefined
    })
    const afterMs = performance.now() - incident.happenedAt
    expect(byRole(tree)).toEqual(truth)
    expect(afterMs).toBeLessThan(seenWithinMs)
    expect(tree.capped).toBe(false)
  })

  test('the root comes first, with all that wait for it and what it holds by name', async () => {
    const { roots, sessions } = await observer.locks()
    expect(roots).toEqual([incident.pids.billing])
    const [root] = sessions
    expect(root).toMatchObject({
      pid: incident.pids.billing,
      application: 'billing',
      state: 'idle in transaction',
      waiters: 11,
      blockedBy: [],
    })
    expect(root?.holds.map(({ name }) => name).toSorted()).toEqual(
      [
        ...billingKeys,
        'row of public.accounts',
        'row of public.orders',
        'table public.accounts',
      ].toSorted(),
    )
    expect(sessions.map(({ waiters }) => waiters).slice(0, 4)).toEqual([11, 3, 3, 1])
  })

  test('every named lock is named, also one whose label is cut off and those behind a first key', async () => {
    const { sessions } = await observer.locks()
    const advisory = sessions
      .flatMap(({ holds, waitsFor }) => [...holds, ...(waitsFor === undefined ? [] : [waitsFor])])
      .filter(({ id }) => id !== undefined)
    expect(advisory.length).toBeGreaterThan(8)
    expect(advisory.filter(({ kind }) => kind !== 'named')).toEqual([])
    const holder = sessions.find(({ pid }) => pid === incident.pids['report-night'])
    // The negative control of the registry: the label alone does not say it.
    expect(holder?.label).not.toContain('2026-10')
    expect(holder?.holds[0]).toMatchObject({
      name: 'report:acme-international:monthly-revenue-by-region:2026-10',
      namespace: 'report',
      source: 'registry',
    })
  })

  test('a session is told apart by what it is asked for', async () => {
    const seen = await observer.session(incident.pids['tenant-login'])
    expect(seen).toMatchObject({
      application: 'tenant-login',
      waitsFor: { kind: 'named', name: 'tenant:eu:42', namespace: 'tenant', source: 'annotation' },
      blockedBy: [{ pid: incident.pids['tenant-close'], kind: 'hard' }],
    })
    expect(seen?.waitingMs).toBeGreaterThan(0)
  })

  test('keys that many wait for are counted', async () => {
    const keys = await observer.hotKeys()
    expect(keys[0]).toMatchObject({ waiting: 2 })
    expect(keys.find(({ name }) => name === 'cart:7')).toMatchObject({
      namespace: 'cart',
      waiting: 2,
    })
  })

  test('can be drawn as a tree in which everybody is once', async () => {
    const drawn = (branches: readonly Branch[]): unknown =>
      Object.fromEntries(
        branches.map(({ session, below }) => [incident.roleOf(session.pid), drawn(below)]),
      )
    expect(drawn(lockBranches(await observer.locks()))).toEqual({
      billing: {
        'checkout-1': {},
        'checkout-2': {},
        'report-night': { 'report-day': {}, 'report-view': {}, 'order-edit': {} },
        'stock-sync': {},
        'tenant-close': { 'tenant-login': {} },
        migration: { dashboard: {} },
      },
    })
  })

  test('advice is attached to whoever can do something about it', async () => {
    const advised = await waitUntil('the root is idle for long enough', async () => {
      const { sessions } = await observer.locks()
      return (sessions[0]?.advice.length ?? 0) >= 2 ? sessions : undefined
    })
    expect(advised[0]?.advice.map(({ code }) => code)).toEqual([
      'idle-in-transaction',
      'held-across-io',
    ])
    expect(advised.slice(1).flatMap(({ advice }) => advice)).toEqual([])
  })
})

describe('what other looks at the same incident show', () => {
  test('a join of pg_locks on transactions and tables finds no blocker of an advisory lock', async () => {
    const { rows } = await direct.query<{
      waiter: number
      blocker: number | null
      locktype: string
    }>(
      // Of these sessions: other tests use the server too.
      `SELECT w.pid AS waiter, h.pid AS blocker, w.locktype
      FROM pg_locks AS w
      LEFT JOIN pg_locks AS h ON h.granted AND h.pid <> w.pid
        AND (h.transactionid = w.transactionid OR h.relation = w.relation AND h.locktype = w.locktype)
      WHERE NOT w.granted AND w.pid = ANY ($1)`,
      [Object.values(incident.pids)],
    )
    const waiters = (found: typeof rows): string[] =>
      [...new Set(found.map(({ waiter }) => String(incident.roleOf(waiter))))].toSorted()
    const blind = rows.filter(({ blocker }) => blocker === null)
    expect(waiters(blind)).toEqual(
      [
        'checkout-1',
        'checkout-2',
        'report-day',
        'report-view',
        'stock-sync',
        'tenant-login',
      ].toSorted(),
    )
    expect(blind.every(({ locktype }) => locktype === 'advisory')).toBe(true)
    // Those that merely use the table are taken for blockers of a reader, and the one in the queue is not seen.
    const dashboard = rows.filter(({ waiter }) => waiter === incident.pids.dashboard)
    expect(dashboard.map(({ blocker }) => blocker)).not.toContain(incident.pids.migration)
  })

  test('pg_locks alone shows two numbers', async () => {
    const { rows } = await direct.query<Record<string, unknown>>(
      `SELECT * FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND pid = ANY ($1)`,
      [Object.values(incident.pids)],
    )
    expect(rows).toHaveLength(6)
    expect(JSON.stringify(rows)).not.toMatch(/cart|report|tenant|inventory/)
  })
})

test('without the registry nothing is misnamed: what is cut off has no name', async () => {
  const elsewhere = createObserver(fromPg(direct), { schema: 'not_there' })
  const { sessions } = await elsewhere.locks()
  const holder = sessions.find(({ pid }) => pid === incident.pids['report-night'])
  expect(holder?.holds.find(({ id }) => id !== undefined)).toMatchObject({
    kind: 'advisory',
    source: 'none',
    name: expect.stringMatching(/^advisory -?\d+ \(name not noted\)$/) as string,
  })
  expect(sessions.find(({ pid }) => pid === incident.pids['checkout-1'])?.waitsFor?.name).toBe(
    'cart:7',
  )
})
