import { startPostgres, withClient } from '@holdfast/testkit'
import pg from 'pg'
import { explore } from '../../packages/race/src/explore.ts'
import { createRunner, type LiveRunner } from '../../packages/race/src/run/create-runner.ts'
import type { BenchScenario, FactTable } from '../harness/bench-scenario.ts'
import type { Comparison } from '../harness/compare.ts'
import { quantile, summarise } from '../harness/summary.ts'
import { checkoutOf, checkoutTables, type Taking } from '../race/checkout.ts'
import { overHttp } from './race-over-http.ts'

export const race: BenchScenario = {
  about: 'what one schedule of the race explorer costs, and how long a checkout takes to exhaust',
  method:
    'Server and client on one machine. schedule_vs_serial: two flows of BEGIN, SELECT count, INSERT, COMMIT on pg, ' +
    'with synchronous_commit off, so that no wait for the disk hides what we cost (…_durable: on). Measured: one run of the explorer on kept connections, from the end of the seed to the verdict about the ' +
    'tables, in the orders "one after the other", "the other first" and "in turn"; against the same two functions one ' +
    'after the other on a pool of their own, seeded the same. In turn, call by call; the ratio of the medians of a ' +
    'round; the median of the rounds with p10 and p90. prisma_checkout_s: seconds until every class of two checkouts ' +
    'on Prisma 7 (interactive transaction, compare and set with retry) has been run, the slowest of the correct kinds. ' +
    'http_checkout_s: seconds from the start of a process to the verdict about two checkouts that are posted to an Express ' +
    'server in it; equal_verdicts: the share of fresh processes, every other one with the race, that gave the right verdict.',
  async run({ quick, progress }) {
    progress('starting PostgreSQL')
    await using server = await startPostgres({ settings: { fsync: 'on' } })
    const rounds = quick ? 5 : 20
    const url = await server.createDatabase('race')
    const durable = await scheduleCost(url, 'schedule_vs_serial_durable', rounds, progress)
    await withClient(url, async (client) => {
      await client.query('DROP TABLE seat')
      const name = client.escapeIdentifier(client.database ?? '')
      await client.query(`ALTER DATABASE ${name} SET synchronous_commit = off`)
    })
    const schedule = await scheduleCost(url, 'schedule_vs_serial', rounds, progress)
    const checkout = await checkouts(await server.createDatabase('checkout'), quick, progress)
    const http = await overHttp(server, quick, progress)
    return {
      comparisons: [
        { ...schedule.comparison, bar: 4, barIs: 'at most' },
        durable.comparison,
        checkout.comparison,
        ...http.comparisons,
      ],
      facts: [schedule.facts, durable.facts, checkout.facts, http.facts],
    }
  },
}

/** Four statements, whoever comes first. */
async function reserve(pool: pg.Pool, who: string): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    const { rows } = await client.query<{ n: number }>('SELECT count(*)::int AS n FROM seat')
    await client.query('INSERT INTO seat (who, place) VALUES ($1, $2)', [who, rows[0]?.n])
    await client.query('COMMIT')
  } finally {
    client.release()
  }
}

type Order = Parameters<LiveRunner['run']>[0]

/** Who goes on when both could. */
const orders: Readonly<Record<string, Order>> = {
  'one after the other': ({ enabled }) => first(enabled.map(({ choice }) => choice)),
  'the other first': ({ enabled }) => first(enabled.map(({ choice }) => choice).toReversed()),
  'in turn': ({ enabled }, steps) => {
    const choices = enabled.map(({ choice }) => choice)
    return choices.find(({ flow }) => flow !== steps.at(-1)?.flow) ?? first(choices)
  },
}

function first<T>(items: readonly T[]): T {
  const [item] = items
  if (item === undefined) throw new RangeError('there is nothing to choose from')
  return item
}

const callsOfARound = 30

/** One run of the explorer against the same statements one after the other. */
async function scheduleCost(
  url: string,
  ratio: string,
  rounds: number,
  progress: (text: string) => void,
): Promise<Measured> {
  const control = new pg.Client({ connectionString: url })
  await control.connect()
  await control.query('CREATE TABLE seat (id serial PRIMARY KEY, who text NOT NULL, place int)')
  const empty = 'DELETE FROM seat'
  let seedMs = 0
  await using runner = await createRunner({
    url,
    flows: {
      ann: ({ pool }) => reserve(pool, 'ann'),
      bob: ({ pool }) => reserve(pool, 'bob'),
    },
    async seed({ query }) {
      const began = performance.now()
      await query(empty)
      seedMs = performance.now() - began
    },
  })
  const pools = ['ann', 'bob'].map((who) => ({
    who,
    pool: new pg.Pool({ connectionString: url, max: 1 }),
  }))

  const sides: Record<string, () => Promise<number>> = {
    async serial() {
      await control.query(empty)
      return await timed(async () => {
        for (const { who, pool } of pools) await reserve(pool, who)
      })
    },
  }
  for (const [name, order] of Object.entries(orders)) {
    sides[name] = async () => {
      const ms = await timed(async () => {
        const { trouble } = await runner.run(order)
        if (trouble !== undefined) throw new Error(trouble.message)
      })
      return ms - seedMs
    }
  }

  const names = Object.keys(sides)
  const medians = new Map<string, number[]>(names.map((name) => [name, []]))
  const ratios: number[] = []
  // The first round warms up: the explorer looks at the locks of a statement until it knows it.
  for (let round = 0; round <= rounds; round += 1) {
    const samples = new Map<string, number[]>(names.map((name) => [name, []]))
    for (let call = 0; call < callsOfARound; call += 1) {
      for (let turn = 0; turn < names.length; turn += 1) {
        const name = names[(turn + call) % names.length] ?? ''
        samples.get(name)?.push((await sides[name]?.()) ?? Number.NaN)
      }
    }
    if (round === 0) continue
    for (const name of names) medians.get(name)?.push(quantile(samples.get(name) ?? [], 0.5))
    const runs = Object.keys(orders).flatMap((name) => samples.get(name) ?? [])
    ratios.push(quantile(runs, 0.5) / quantile(samples.get('serial') ?? [], 0.5))
    if (round % Math.ceil(rounds / 4) === 0) progress(`${ratio}: round ${round} of ${rounds}`)
  }
  await Promise.all(pools.map(({ pool }) => pool.end()))
  await control.end()

  const ms = (name: string): string => `${quantile(medians.get(name) ?? [], 0.5).toFixed(2)} ms`
  return {
    comparison: {
      name: ratio,
      ratio: summarise(ratios),
      sides: [
        { value: ms('in turn'), label: 'one schedule of two flows of four statements' },
        { value: ms('serial'), label: 'the same eight statements, one after the other' },
      ],
    },
    facts: {
      title: `${ratio}, by order:`,
      columns: ['order', 'median'],
      rows: names.map((name) => [name, ms(name)]),
    },
  }
}

interface Measured {
  readonly comparison: Comparison
  readonly facts: FactTable
}

async function timed(work: () => Promise<void>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}

const correct: readonly Taking[] = ['conditional decrement', 'compare and set']
/** Of each kind; the machine has good and bad moments. */
const searches = 3

/** Seconds until nothing is left to run of two checkouts on Prisma. */
async function checkouts(
  url: string,
  quick: boolean,
  progress: (text: string) => void,
): Promise<Measured> {
  await withClient(url, (client) => client.query(checkoutTables))
  const rows: string[][] = []
  const seconds: Record<string, number[]> = {}
  for (const taking of [...correct, 'read, then write'] as const) {
    for (let time = 0; time < (quick ? 1 : searches); time += 1) {
      const { verdict, coverage, failure } = await explore({
        ...checkoutOf(taking),
        url,
        budget: { schedules: 10_000, ms: 600_000 },
        onProgress: () => undefined,
      })
      progress(`checkout, ${taking}: ${verdict}`)
      if (correct.includes(taking) && !coverage.exhaustive) {
        throw new Error(`two checkouts (${taking}) were not exhausted: ${verdict}`)
      }
      ;(seconds[taking] ??= []).push(coverage.milliseconds / 1_000)
      if (time > 0) continue
      rows.push([
        taking,
        failure === undefined ? verdict : `race: ${failure.kind}`,
        String(coverage.classes),
        String(coverage.schedules),
        String(coverage.interleavings),
        `${(coverage.milliseconds / 1_000).toFixed(2)} s`,
      ])
    }
  }
  const slowest = correct.reduce((one, other) =>
    quantile(seconds[one] ?? [], 0.5) >= quantile(seconds[other] ?? [], 0.5) ? one : other,
  )
  return {
    comparison: {
      name: 'prisma_checkout_s',
      bar: 60,
      barIs: 'at most',
      ratio: summarise(seconds[slowest] ?? []),
      sides: [
        {
          value: `${quantile(seconds[slowest] ?? [], 0.5).toFixed(2)} s`,
          label: `every class of two checkouts on Prisma 7 (${slowest})`,
        },
      ],
    },
    facts: {
      title:
        'Two checkouts on Prisma 7, exhausted (the wrong one: until found, shrunk and replayed):',
      columns: ['stock is taken by', 'verdict', 'classes', 'schedules', 'interleavings', 'time'],
      rows,
    },
  }
}
