import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { startPostgres } from '@holdfast/testkit'
import pg from 'pg'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../packages/holdfast/src/index.ts'
import { migrate } from '../../packages/holdfast/src/schema/index.ts'
import type { BenchScenario, FactTable } from '../harness/bench-scenario.ts'
import type { Comparison } from '../harness/compare.ts'
import { quantile, summarise } from '../harness/summary.ts'

interface Length {
  readonly rounds: number
  /** How long the key is kept in each round. */
  readonly keptMs: number
  /** How long a reader has all movements. */
  readonly readMs: number
}

const full: Length = { rounds: 4, keptMs: 30_000, readMs: 60_000 }
const quick: Length = { rounds: 4, keptMs: 2_500, readMs: 2_500 }
const keys = 1_000

export const ledgerBystander: BenchScenario = {
  about:
    'whether a transaction that keeps one account, or upkeep beside a long reader, stops anybody else',
  method:
    `Server and client on one machine, fsync on. One process, a pool of 10; callers consume from ${keys} keys, each again ` +
    'and again, for as long as the key is kept in the other slice of the round: beside a transaction that is open and keeps nothing, and while a transaction of ' +
    'somebody keeps one more key and calls for that key come in all the time. Which of the two is first changes from round to round, and before each slice the tables are ' +
    'vacuumed: an open transaction leaves old rows behind, for which whoever comes next would pay. upkeep: a transaction has read all movements, ' +
    'and maintain tries to make new months and migrate runs, over and over.',
  async run({ quick: short, progress }) {
    const length = short ? quick : full
    progress('starting PostgreSQL')
    await using server = await startPostgres({ settings: { fsync: 'on', max_connections: '100' } })
    const url = await server.createDatabase('bench')
    const pool = new pg.Pool({ connectionString: url, max: 10 })
    pool.on('error', () => undefined)
    const driver = fromPg(pool)
    await migrate(driver)
    const hf = createHoldfast(driver)
    const quota = hf.quota({ name: 'bystander', limit: Number.MAX_SAFE_INTEGER, per: 'lifetime' })
    const once = (): { operationId: string } => ({ operationId: randomUUID() })
    const use = async (key: string): Promise<unknown> => await quota.consume(key, 1, once())
    for (let key = 0; key < keys; key += 1) await use(`${key}`)
    await use('kept')
    const crowd = async (callers: number, forMs = length.keptMs): Promise<number> => {
      let done = 0
      const ends = performance.now() + forMs
      await Promise.all(
        Array.from({ length: callers }, async () => {
          while (performance.now() < ends) {
            await use(`${Math.floor(Math.random() * keys)}`)
            done += 1
          }
        }),
      )
      return done
    }
    const contest = {
      bar: 0.9,
      rounds: length.rounds,
      sliceMs: length.keptMs,
      clear: async (): Promise<unknown> => await pool.query('VACUUM ANALYZE'),
    }
    const comparisons: Comparison[] = []
    const facts: FactTable[] = []
    try {
      for (const callers of [64, 512]) {
        const waits: number[] = []
        const codes = new Map<string, number>()
        const kept = async (): Promise<number> => {
          await using _ = await keeping(pool, async (client) =>
            quota.consume(client, 'kept', 1, once()),
          )
          const over = new AbortController()
          const calling = (async () => {
            const calls: Promise<unknown>[] = []
            while (!over.signal.aborted) {
              const began = performance.now()
              calls.push(
                quota.consume('kept', 1, { ...once(), wait: '1 s' }).then(
                  () => undefined,
                  (error: { code: string; blockers: readonly unknown[] }) => {
                    waits.push(performance.now() - began)
                    const told = `${error.code}, ${error.blockers.length} named`
                    codes.set(told, (codes.get(told) ?? 0) + 1)
                  },
                ),
              )
              await pause(20)
            }
            await Promise.all(calls)
          })()
          const done = await crowd(callers)
          over.abort()
          await calling
          return done
        }
        comparisons.push(
          await versus(
            { ...contest, name: `others_vs_unlocked_${callers}` },
            { label: `${callers} callers of other keys while one is kept`, run: kept },
            {
              label: 'while a transaction is open that keeps none',
              // An open transaction keeps old rows from being cleared away, and that costs everybody.
              run: async () => {
                await using _ = await keeping(pool, async (client) =>
                  client.query('SELECT pg_current_xact_id()'),
                )
                return await crowd(callers)
              },
            },
            progress,
          ),
        )
        facts.push({
          title: `Calls for the key that is kept, with a limit of 1 s, beside ${callers} callers:`,
          columns: ['told', 'calls'],
          rows: [
            ...[...codes].map(([told, count]) => [told, `${count}`]),
            [
              'median and longest wait',
              `${quantile(waits, 0.5).toFixed(0)} ms, ${quantile(waits, 1).toFixed(0)} ms`,
            ],
          ],
        })
      }
      comparisons.push(
        await versus(
          { ...contest, name: 'upkeep_vs_alone', sliceMs: length.readMs },
          {
            label: '64 callers while somebody has read all movements, and upkeep goes on',
            run: async () => await upkeep(pool, hf, async () => await crowd(64, length.readMs)),
          },
          { label: 'alone', run: async () => await crowd(64, length.readMs) },
          progress,
        ),
      )
    } finally {
      await pool.end()
    }
    return { comparisons, facts }
  },
}

/** A transaction in which somebody has done something, until it is disposed of. */
async function keeping(
  pool: pg.Pool,
  does: (client: pg.PoolClient) => Promise<unknown>,
): Promise<AsyncDisposable> {
  const client = await pool.connect()
  await client.query('BEGIN')
  await does(client)
  return {
    async [Symbol.asyncDispose]() {
      await client.query('COMMIT')
      client.release()
    },
  }
}

let months = 12

async function upkeep(
  pool: pg.Pool,
  hf: Holdfast<pg.PoolClient>,
  run: () => Promise<number>,
): Promise<number> {
  await using _ = await keeping(pool, async (client) =>
    client.query('SELECT count(*) FROM holdfast.movement'),
  )
  let isOver = false
  const keptUp = (async () => {
    while (!isOver) {
      months += 1
      await hf.ledger.maintain({ monthsAhead: months, wait: '500 ms' }).catch(() => undefined)
      await migrate(fromPg(pool))
    }
  })()
  const done = await run()
  isOver = true
  await keptUp
  return done
}

interface Side {
  readonly label: string
  run(): Promise<number>
}

interface Contest {
  readonly name: string
  readonly bar: number
  readonly rounds: number
  readonly sliceMs: number
  /** Before each slice, so that none pays for the one before it. */
  readonly clear: () => Promise<unknown>
}

/** Both in turn, in each round another one first; the ratio of what they got done. */
async function versus(
  { name, bar, rounds, sliceMs, clear }: Contest,
  measured: Side,
  baseline: Side,
  progress: (text: string) => void,
): Promise<Comparison> {
  const ratios: number[] = []
  const perSecond: [number[], number[]] = [[], []]
  for (let round = 1; round <= rounds; round += 1) {
    const done = new Map<Side, number>()
    const order = round % 2 === 0 ? [measured, baseline] : [baseline, measured]
    for (const side of order) {
      await clear()
      done.set(side, await side.run())
    }
    const [beside, alone] = [done.get(measured) ?? 0, done.get(baseline) ?? 0]
    ratios.push(beside / alone)
    perSecond[0].push((beside * 1_000) / sliceMs)
    perSecond[1].push((alone * 1_000) / sliceMs)
    progress(`${name}: round ${round} of ${rounds}, ${(beside / alone).toFixed(2)}`)
  }
  const side = (values: readonly number[], label: string): { value: string; label: string } => ({
    value: `${Math.round(quantile(values, 0.5))}/s`,
    label,
  })
  return {
    name,
    bar,
    ratio: summarise(ratios),
    sides: [side(perSecond[0], measured.label), side(perSecond[1], baseline.label)],
  }
}
