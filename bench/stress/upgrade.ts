import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { startPostgres, withClient } from '@holdfast/testkit'
import type { Pool, PoolClient } from 'pg'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../packages/holdfast/src/index.ts'
import { migrate } from '../../packages/holdfast/src/schema/index.ts'
import {
  callApply,
  columnsOf,
  honestLine,
} from '../../packages/holdfast/test/support/ledger-raw.ts'
import { openPool } from '../harness/open-pool.ts'
import type { StressScenario } from '../harness/stress-scenario.ts'
import { type History, loadHistory } from '../ledger/load-history.ts'

const fullCount = 10_000_000
const briefCount = 20_000
const mostWaitMs = 1_000
const callers = 6
/** How long a caller's own transaction is open. */
const transactionMs = 200
/** How long a thoughtless change of a table would keep everybody waiting. */
const carelessMs = 1_500

export const upgrade: StressScenario = {
  about: "the schema of 0.1 is brought up to date under load, and both versions' callers go on",
  async run({ seconds, count, progress }) {
    progress('starting PostgreSQL')
    await using server = await startPostgres({
      settings: { fsync: 'on', shared_buffers: '256MB', max_wal_size: '8GB' },
    })
    const movements = count ?? (seconds === undefined ? fullCount : briefCount)
    const lasting = (seconds ?? 40) * 250
    const url = await server.createDatabase('upgraded')
    const real = await played(url, movements, lasting, false, progress)
    const other = await server.createDatabase('careless')
    const careless = await played(other, briefCount, lasting, true, () => undefined)
    return {
      operations: real.writes,
      violations: real.violations,
      controls: { careless: careless.longestMs > mostWaitMs ? 'caught' : 'missed' },
      notes: [
        `${movements.toLocaleString('en')} movements, ${real.writes} writes meanwhile`,
        `brought up to date in ${Math.round(real.upgradeMs)} ms; the longest write took ${Math.round(real.longestMs)} ms`,
        `callers of 0.1: ${process.env['HOLDFAST_OLD'] === undefined ? 'its statements' : 'the library itself'}`,
        `with a table locked for ${carelessMs} ms: the longest write took ${Math.round(careless.longestMs)} ms`,
      ],
    }
  },
}

interface Played {
  readonly writes: number
  readonly longestMs: number
  readonly upgradeMs: number
  readonly violations: readonly string[]
}

/** Takes so much of the key, and says whether it was taken. */
type Take = (key: string, amount: number, operationId: string, tx?: PoolClient) => Promise<boolean>

const limit = 1_000_000_000
/** Have a grant to begin with. Everybody takes from the first; the second is in a transaction most of the time. */
const [hot, held] = ['hot', 'held']

async function played(
  url: string,
  movements: number,
  lasting: number,
  isCareless: boolean,
  progress: (text: string) => void,
): Promise<Played> {
  await withClient(url, async (client) => {
    await client.query(schemaOf01())
    await client.query('RESET ALL')
  })
  progress(`loading ${movements} movements`)
  const history = {
    deep: movements / 10,
    others: 1_000,
    each: Math.floor((movements * 0.9) / 1_000),
  }
  await loadHistory(url, history)
  const pool = await openPool(url, 3 * callers + 2)
  await using _pool = { [Symbol.asyncDispose]: async () => await pool.end() }
  const violations: string[] = []
  const taken = new Map<string, number>()
  let [isOver, longestMs, writes] = [false, 0, 0]
  const old = await takeOf01(pool)
  for (const key of [hot, held]) await withGrant(pool, key)
  const now = takeOfNow(createHoldfast(fromPg(pool)))

  const write = async (key: string, take: Take, tx?: PoolClient): Promise<void> => {
    const timed = async (...[amount, id]: readonly [number, string]): Promise<boolean> => {
      const began = performance.now()
      const isTaken = await take(key, amount, id, tx)
      longestMs = Math.max(longestMs, performance.now() - began)
      return isTaken
    }
    try {
      const id = randomUUID()
      if (await timed(1, id)) taken.set(key, (taken.get(key) ?? 0) + 1)
      else violations.push(`${key} was refused, with room for it`)
      // Known by now, and too much.
      if (!(await timed(1, id))) violations.push(`${key}: a repetition was refused`)
      if (await timed(3 * limit, randomUUID())) violations.push(`${key}: too much was taken`)
      writes += 3
    } catch (error) {
      violations.push(`${key}: ${String(error)}`)
    }
  }
  const loop = async (key: string, take: Take): Promise<void> => {
    while (!isOver && violations.length < 20) await write(key, take)
  }
  /** Writes first, and again when a while has passed: the upgrade may come in between. */
  const inTransactions = async (key: string): Promise<void> => {
    while (!isOver && violations.length < 20) {
      const client = await pool.connect()
      try {
        await client.query('BEGIN')
        await write(key, old, client)
        await client.query(`SELECT pg_sleep(${transactionMs / 1_000})`)
        await write(key, old, client)
        await client.query('COMMIT')
      } catch (error) {
        violations.push(`${key}: ${String(error)}`)
        await client.query('ROLLBACK').catch(() => undefined)
      } finally {
        client.release()
      }
    }
  }
  const running = [
    ...Array.from({ length: callers }, (_, at) => loop(`old-${at}`, old)),
    // One key for all: they wait for each other, so that some are under way at any moment.
    ...Array.from({ length: callers }, () => loop(hot, old)),
    inTransactions(held),
    // Most of the time in the middle of a function of 0.1, also when the new ones come.
    loop(held, old),
  ]
  await pause(lasting)
  progress('bringing it up to date')
  const began = performance.now()
  if (isCareless) await lockedFor(pool, carelessMs)
  await migrate(fromPg(pool))
  const upgradeMs = performance.now() - began
  running.push(...Array.from({ length: callers }, (_, at) => loop(`new-${at}`, now)))
  running.push(loop(hot, now))
  await pause(lasting)
  isOver = true
  await Promise.all(running)
  if (longestMs > mostWaitMs) {
    violations.push(`a write took ${Math.round(longestMs)} ms, more than ${mostWaitMs}`)
  }
  violations.push(...(await whatIsWrong(pool, taken, history, progress)))
  return { writes, longestMs, upgradeMs, violations }
}

/** Everything that was said to be taken is there, once, and so is the past. */
async function whatIsWrong(
  pool: Pool,
  taken: ReadonlyMap<string, number>,
  { deep, others, each }: History,
  progress: (text: string) => void,
): Promise<string[]> {
  progress('looking for what was lost')
  const wrong: string[] = []
  const { rows } = await pool.query<{ key: string; debited: string; movements: string }>(
    `SELECT a.key, b.debited, (SELECT count(*) FROM holdfast.movement m
        WHERE m.bucket = b.bucket AND m.account = b.account) AS movements
     FROM holdfast.account a JOIN holdfast.balance b ON b.bucket = a.bucket AND b.account = a.id
     WHERE a.key = ANY ($1)`,
    [[...taken.keys()]],
  )
  for (const [key, times] of taken) {
    const found = rows.find((row) => row.key === key)
    const grants = key === hot || key === held ? 1 : 0
    if (Number(found?.debited) !== times || Number(found?.movements) !== times + grants) {
      wrong.push(`${key}: ${times} were taken, and ${found?.debited} are written`)
    }
  }
  const total = [...taken.values()].reduce((sum, times) => sum + times, 0)
  const counted = await pool.query<{ count: string }>('SELECT count(*) FROM holdfast.movement')
  const past = Number(counted.rows[0]?.count) - total - 2
  const made = deep + others * each
  if (past !== made) wrong.push(`of ${made} movements of before there are ${past}`)
  const { problems } = await createHoldfast(fromPg(pool)).ledger.audit()
  return [...wrong, ...problems.map((problem) => `audit: ${JSON.stringify(problem)}`)]
}

function schemaOf01(): string {
  const file = new URL('../ledger/schema-0.1.sql.gz', import.meta.url)
  return gunzipSync(readFileSync(file)).toString()
}

/** By the library as it was, if HOLDFAST_OLD says where it is built; else by the statements that it sent. */
async function takeOf01(pool: Pool): Promise<Take> {
  const folder = process.env['HOLDFAST_OLD']
  if (folder !== undefined) {
    const built = (path: string): Promise<unknown> =>
      import(pathToFileURL(join(resolve(folder), 'packages/holdfast/dist', path)).href)
    const index = (await built('index.js')) as { createHoldfast: typeof createHoldfast }
    const drivers = (await built('drivers/pg.js')) as { fromPg: typeof fromPg }
    return takeOfNow(index.createHoldfast(drivers.fromPg(pool)))
  }
  return async (key, amount, operationId, tx) => {
    const line = { ...honestLine(key, key, operationId), kind: 2, amount: String(amount) }
    const [status] = await callApply(tx ?? pool, columnsOf([{ ...line, allowance: String(limit) }]))
    return status === 0 || status === 1
  }
}

async function withGrant(pool: Pool, key: string): Promise<void> {
  const line = { ...honestLine(key, key, randomUUID()), kind: 8, amount: String(limit) }
  const terms = JSON.stringify({ priority: 50 })
  const statuses = await callApply(pool, columnsOf([{ ...line, terms }]))
  if (statuses[0] !== 0) throw new Error('the grant was refused')
}

function takeOfNow(hf: Holdfast<PoolClient>): Take {
  const quota = hf.quota({ name: 'raw', limit, per: 'lifetime' })
  return async (key, amount, operationId, tx) => {
    const { ok } =
      tx === undefined
        ? await quota.consume(key, amount, { operationId })
        : await quota.consume(tx, key, amount, { operationId })
    return ok
  }
}

async function lockedFor(pool: Pool, ms: number): Promise<void> {
  const client = await pool.connect()
  await client.query('BEGIN; LOCK TABLE holdfast.balance IN ACCESS EXCLUSIVE MODE')
  await client.query(`SELECT pg_sleep(${ms / 1_000})`)
  await client.query('COMMIT')
  client.release()
}
