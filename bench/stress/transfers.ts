import { startPostgres, waitUntil } from '@holdfast/testkit'
import type pg from 'pg'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../packages/holdfast/src/index.ts'
import { migrateFiles } from '../../packages/holdfast/src/schema/migrate.ts'
import { ownFiles, type SchemaFiles } from '../../packages/holdfast/src/schema/schema-files.ts'
import { startMortalCrew } from '../harness/mortal-crew.ts'
import { openPool } from '../harness/open-pool.ts'
import type { StressScenario } from '../harness/stress-scenario.ts'
import { weakenedFiles } from '../ledger/weakened-files.ts'

export interface TransfersSetup {
  readonly url: string
  /** Debit and credit as two operations. */
  readonly apart: boolean
}

export const books = ['wallet', 'savings'] as const
export const wallets = 200
const opening = 1_000
const processes = 3
const fullCount = 1_000_000
/** Of `--seconds`; the rest is for starting and for the controls. */
const share = 0.4
/** After so many transfers one of the processes is killed. In a long run less often: a new one costs as much as hundreds. */
const betweenKills = { brief: 500, long: 4_000 } as const

export const keyOf = (number: number): string => `user-${number}`

export const transfers: StressScenario = {
  about: `transfers of three legs between ${wallets * books.length} accounts, by processes that are killed`,
  async run({ seconds, count = fullCount, progress }) {
    progress('starting PostgreSQL')
    await using server = await startPostgres({ settings: { statement_timeout: '60s' } })
    const goal = seconds === undefined ? { count } : { seconds: seconds * share }
    const bank = await trade(await server.createDatabase('bank'), ownFiles(), false, goal, progress)
    const brief = { seconds: 4 }
    const leg = weakenedFiles('leg')
    const short = await trade(await server.createDatabase('leg'), leg, false, brief, progress)
    const apart = await server.createDatabase('apart')
    const two = await trade(apart, ownFiles(), true, brief, progress)
    return {
      operations: bank.transfers,
      violations: bank.wrong,
      controls: {
        leg: short.wrong.length > 0 ? 'caught' : 'missed',
        two_operations: two.wrong.length > 0 ? 'caught' : 'missed',
      },
      notes: [
        `${bank.transfers} transfers, ${bank.killed} processes killed, the sum was looked at ${bank.looks} times`,
        `leg: ${short.wrong[0] ?? 'nothing'}`,
        `two_operations: ${two.wrong[0] ?? 'nothing'}`,
      ],
    }
  },
}

interface Traded {
  readonly transfers: number
  readonly killed: number
  readonly looks: number
  readonly wrong: readonly string[]
}

interface Goal {
  readonly count?: number
  readonly seconds?: number
}

async function trade(
  url: string,
  files: SchemaFiles,
  apart: boolean,
  { count = Infinity, seconds = Infinity }: Goal,
  progress: (text: string) => void,
): Promise<Traded> {
  // An audit of millions of movements takes longer on a busy machine than any statement of the senders may.
  const pool = await openPool(`${url}?options=-c%20statement_timeout%3D0`, 2)
  try {
    const hf = createHoldfast(fromPg(pool))
    await migrateFiles(fromPg(pool), files)
    for (const name of books) {
      const rows = Array.from({ length: wallets }, (_, at) => ({
        key: keyOf(at),
        balance: opening,
      }))
      await hf.ledger.open(name, rows, { operationId: 'opening' })
    }
    const sums = new Set<string>()
    const seen = { transfers: 0, looks: 0, killed: 0 }
    {
      await using crew = await startMortalCrew(
        new URL('./transfers-sender.ts', import.meta.url),
        processes,
        {
          url,
          apart,
        } satisfies TransfersSetup,
      )
      let until = Infinity
      const between = count === Infinity ? betweenKills.brief : betweenKills.long
      let nextKill = between
      await waitUntil(
        'enough transfers',
        async () => {
          crew.check()
          const look = await lookAt(pool)
          sums.add(look.sum)
          seen.looks += 1
          seen.transfers = look.transfers
          // The time counts from the first of them.
          if (until === Infinity && look.transfers > 0) until = performance.now() + seconds * 1_000
          if (seen.looks % 100 === 0)
            progress(
              `${look.transfers} transfers, all accounts have ${[...sums].slice(0, 3).join(', ')}`,
            )
          if (look.transfers >= nextKill) {
            await crew.killOne(seen.killed)
            nextKill = look.transfers + between
            seen.killed = crew.killed
          }
          return performance.now() >= until || look.transfers >= count || undefined
        },
        { limitMs: 21_600_000, everyMs: 50 },
      )
    }
    await untilQuiet(pool)
    const { sum, transfers, below } = await lookAt(pool)
    sums.add(sum)
    progress(
      `${transfers} transfers, all accounts had ${[...sums].slice(0, 3).join(', ')}: auditing`,
    )
    const audit = await hf.ledger.audit()
    const wrong = [...sums]
      .filter((each) => each !== String(wallets * books.length * opening))
      .map((each) => `all accounts together had ${each}`)
    if (below > 0) wrong.push(`${below} accounts are below zero`)
    if (audit.found > 0) wrong.push(`an audit found ${audit.found}: ${audit.problems[0]?.check}`)
    return { ...seen, transfers, wrong }
  } finally {
    await pool.end()
  }
}

/** One statement, so one moment. Transfers are counted by their first legs. */
async function lookAt(pool: pg.Pool): Promise<{ sum: string; transfers: number; below: number }> {
  const { rows } = await pool.query<{ sum: string; below: number; transfers: number }>(
    `SELECT sum(b.credited - b.debited - b.held)::text AS sum,
       (count(*) FILTER (WHERE b.credited - b.debited - b.held < 0))::int AS below,
       -- Of every movement that is not its account's opening, a third is a first leg.
       ((sum(b.seq) - count(*)) / 3)::int AS transfers
     FROM holdfast.balance b`,
  )
  return rows[0] as { sum: string; transfers: number; below: number }
}

/** What killed processes had sent is done or undone. */
async function untilQuiet(pool: pg.Pool): Promise<void> {
  await waitUntil('nobody else is connected', async () => {
    const { rows } = await pool.query<{ others: number }>(
      `SELECT count(*)::int AS others FROM pg_stat_activity
       WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'`,
    )
    return rows[0]?.others === 0 || undefined
  })
}
