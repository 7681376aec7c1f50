import { setTimeout as pause } from 'node:timers/promises'
import type { InnodbServer } from '@holdfast/testkit'
import { isHoldfastError } from '../../../packages/holdfast/src/core/errors.ts'
import { lockKey } from '../../../packages/holdfast/src/core/locks/lock-key.ts'
import { createHoldfast, examine, migrate } from '../../../packages/holdfast/src/mysql.ts'
import type { Budget } from '../../harness/budget.ts'
import { openInnodbPool, rowsOf } from '../../engines/innodb-pool.ts'
import { randomFor } from '../../harness/random.ts'
import { faultClients, faultTable, insertOf, openFaultClient } from './fault-client.ts'

export interface ServerKills {
  readonly kills: number
  readonly told: Readonly<Record<'done' | 'unknown' | 'failed', number>>
  readonly violations: readonly string[]
  /** What `doctor` says about how durable the server is. */
  readonly findings: readonly string[]
}

const callers = 16
const keys = 6
/** After so many milliseconds of load the server is killed. */
const killAfterMs = { least: 150, most: 900 }

type Outcome = 'done' | 'unknown' | 'failed'

/**
 * Callers write under locks, and the server is killed while they do. After it was started again, what a caller was told
 * is so: done is there, as a whole and once; failed is not there; unknown is there as a whole or not at all.
 */
export async function killedServer(
  server: InnodbServer,
  seed: number,
  budget: Budget,
  stopAtFirst: boolean,
): Promise<ServerKills> {
  const url = await server.createDatabase('killed')
  const first = openInnodbPool(url, 1)
  await first.query(faultTable)
  const setUp = openFaultClient('mysql2', url, 1)
  await migrate(setUp.driver)
  const findings = (await examine(setUp.driver)).map(({ code }) => code)
  await setUp.end()
  await first.end()
  const told = { done: 0, unknown: 0, failed: 0 }
  const violations: string[] = []
  let kills = 0
  for (; budget.allows(kills) && !(stopAtFirst && violations.length > 0); kills += 1) {
    const outcomes = await underLoad(server, url, seed, kills)
    const wrong = await wrongIn(url, outcomes)
    violations.push(...wrong.map((each) => `kill ${kills}: ${each}`))
    for (const outcome of outcomes.values()) told[outcome] += 1
  }
  return {
    kills,
    told,
    violations,
    findings: findings.filter((code) => /log|doublewrite/.test(code)),
  }
}

/** What callers were told, by the id of what they wrote. */
async function underLoad(
  server: InnodbServer,
  url: string,
  seed: number,
  kill: number,
): Promise<ReadonlyMap<string, Outcome>> {
  const outcomes = new Map<string, Outcome>()
  const client = openFaultClient(faultClients[kill % 2] ?? 'mysql2', url, callers)
  const hf = createHoldfast(client.driver, { resolveFor: '2 s' })
  let over = false
  const caller = async (_: unknown, number: number): Promise<void> => {
    const random = randomFor(seed + kill, number)
    for (let at = 0; !over; at += 1) {
      const id = `${kill}.${number}.${at}`
      outcomes.set(id, await written(id, random.integer(1, keys)))
    }
  }
  const written = async (id: string, key: number): Promise<Outcome> => {
    try {
      await hf.guard(
        lockKey('killed', key),
        async (tx, { attempt }) => {
          for (const part of [1, 2]) await client.send(tx, insertOf(id, attempt, part))
        },
        { wait: '2 s', retry: { attempts: 3, budgetMs: 2_000 } },
      )
      return 'done'
    } catch (error) {
      return isHoldfastError(error, 'COMMIT_UNKNOWN') ? 'unknown' : 'failed'
    }
  }
  const load = Promise.all(Array.from({ length: callers }, caller))
  const { least, most } = killAfterMs
  await pause(randomFor(seed, kill).integer(least, most))
  await server.kill()
  over = true
  await load
  await client.end().catch(() => undefined)
  await server.startAgain()
  return outcomes
}

async function wrongIn(
  url: string,
  outcomes: ReadonlyMap<string, Outcome>,
): Promise<readonly string[]> {
  const pool = openInnodbPool(url, 1)
  try {
    const parts = new Map<string, number>()
    for (const { id, n } of await rowsOf(pool, 'SELECT id, COUNT(*) AS n FROM written GROUP BY id'))
      parts.set(String(id), Number(n))
    const wrong: string[] = []
    for (const [id, outcome] of outcomes) {
      const there = parts.get(id) ?? 0
      if (there !== 0 && there !== 2)
        wrong.push(`${id} was told ${outcome}, and ${there} parts are there`)
      if (there === 0 && outcome === 'done') wrong.push(`${id} was told done, and is not there`)
      if (there === 2 && outcome === 'failed') wrong.push(`${id} was told failed, and is there`)
    }
    return wrong
  } finally {
    await pool.end()
  }
}
