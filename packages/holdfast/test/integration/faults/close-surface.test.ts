import { waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import type { Driver } from '../../../src/core/driver.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../../src/index.ts'
import { createRows } from '../../../src/entries/rows.ts'
import { tableText } from '../../support/claims-fixture.ts'
import { ledgerFixture } from '../../support/ledger-fixture.ts'
import { callerTransaction } from '../../support/pg-fixture.ts'
import { type Entry, hasMethods, ownerOf, surface, surfaceOf } from '../../support/surface.ts'

/**
 * `close` knows every method that begins something. The methods are found by walking over everything that a
 * Holdfast hands out, so that one that is added and not registered, or not described, is reported here.
 */
const fixture = ledgerFixture(tableText('job'))

type Made = (driver: Driver<pg.PoolClient>) => Holdfast<pg.PoolClient>

/** As it was before: rows are handed out without passing the door. */
const rowsForgotten: Made = (driver) => ({ ...createHoldfast(driver), rows: createRows(driver) })
const forgotten = Object.keys(surface).filter((path) => path.startsWith('rows.'))

test('every method is known', async () => {
  expect(await unknownTo(createHoldfast)).toEqual([])
})

test('control: a new method is reported', async () => {
  const grown: Made = (driver) =>
    Object.assign(createHoldfast(driver), { vault: { open: () => Promise.resolve() } })
  expect(await unknownTo(grown)).toEqual(['vault.open'])
})

test('after close whatever begins something is refused, and whatever ends something is not', async () => {
  expect(await notRefused(createHoldfast)).toEqual([])
})

test('control: methods that are not registered are not refused', async () => {
  expect((await notRefused(rowsForgotten)).toSorted()).toEqual(forgotten.toSorted())
})

test('close waits for whatever is under way', async () => {
  expect(await notWaitedFor(createHoldfast)).toEqual([])
})

test('control: methods that are not registered are not waited for', async () => {
  expect((await notWaitedFor(rowsForgotten, ['guard', ...forgotten])).toSorted()).toEqual(
    forgotten.toSorted(),
  )
})

/** What is there and was not described, and what was described and is not there. */
async function unknownTo(make: Made): Promise<string[]> {
  const hf = make(fromPg(fixture.pool))
  const found = await surfaceOf(hf, await callerTransaction(fixture))
  await hf.close()
  const paths = new Set(found.map(({ path }) => path))
  const gone = Object.keys(surface).filter((path) => !paths.has(path))
  return [...[...paths].filter((path) => !(path in surface)), ...gone]
}

async function notRefused(make: Made): Promise<string[]> {
  const hf = make(fromPg(fixture.pool))
  const tx = await callerTransaction(fixture)
  const found = await surfaceOf(hf, tx)
  await hf.close()
  const wrong: string[] = []
  for (const { path, on, method } of found) {
    const { kind, call } = surface[path] ?? ({ kind: 'starts' } as Entry)
    // Nothing is given to it: it has to be refused before anybody looks at that.
    if (kind === 'starts' && (await codeOf(() => method.call(on))) !== closed) wrong.push(path)
    if (kind === 'finishes' && (await codeOf(() => call?.(on as never, tx))) === closed)
      wrong.push(path)
  }
  return wrong
}

const closed = 'HOLDFAST_CLOSED'

async function codeOf(call: () => unknown): Promise<unknown> {
  try {
    await call()
    return undefined
  } catch (error) {
    return (error as { readonly code?: string }).code
  }
}

interface Begun {
  readonly path: string
  readonly entry: Entry
  readonly hf: Holdfast<pg.PoolClient>
  readonly on: unknown
}

function isTimed({ path }: Begun): boolean {
  return path === 'ledger.startSweeper' || path === 'ledger.startFollower'
}

/**
 * Each method is called on a Holdfast of its own while nobody answers: the pool's connections are taken, and
 * the caller's transaction waits for a lock. So `close` has to say that something was left.
 */
async function notWaitedFor(make: Made, paths = Object.keys(surface)): Promise<string[]> {
  const pool = new pg.Pool({ connectionString: fixture.database.url, max: 2 })
  onTestFinished(() => pool.end())
  const tx = await callerTransaction(fixture)
  const begun: Begun[] = []
  for (const path of paths) {
    const entry = surface[path] as Entry
    if (entry.kind !== 'starts') continue
    const hf = make(fromPg(pool))
    begun.push({ path, entry, hf, on: await ownerOf(path, hf, tx) })
  }
  const taken = [await pool.connect(), await pool.connect()]
  const blocker = await callerTransaction(fixture)
  await blocker.query('SELECT pg_advisory_xact_lock(1)')
  const blocked = tx.query('SELECT pg_advisory_xact_lock(1)')

  const wrong: string[] = []
  const begin = async ({ path, entry, on }: Begun): Promise<void> => {
    const given = await Promise.resolve(entry.call?.(on as never, tx)).catch(() => undefined)
    if (hasMethods(given) && entry.opens === undefined) wrong.push(`${path}() has methods`)
  }
  // What is timed asks for nothing before its time, which is soon: it is the first in line.
  const [timed, others] = [begun.filter(isTimed), begun.filter((each) => !isTimed(each))]
  const results = timed.map(begin)
  await waitUntil('they wait', () => pool.waitingCount >= timed.length || undefined)
  results.push(...others.map(begin))
  await Promise.all(
    begun.map(async ({ path, hf }) => {
      const { left } = await hf.close({ within: '50 ms', leaveAfter: '50 ms' })
      // A lease cannot be given back either, but that is not what was called.
      if (left.every(({ what }) => what === 'lease')) wrong.push(path)
    }),
  )
  for (const client of taken) client.release()
  await blocker.query('ROLLBACK')
  await blocked
  await Promise.all(results)
  return wrong
}
