/** The program of one process of clients, each with a connection of its own; see connections.ts. */
import type { Pool, PoolClient } from 'pg'
import { openPool } from '../harness/open-pool.ts'
import { randomFor } from '../harness/random.ts'
import { quantile } from '../harness/summary.ts'
import { joinTeam } from '../harness/team-member.ts'
import type { ClientsOrder, ClientsReport, ClientsSetup } from './connections.ts'
import { workOf } from './connections-work.ts'

/** Connections that are made at once: the listener's queue is not endless. */
const dialling = 50

/** So many visits of most clients before anybody stops: less says nothing about waits. */
const leastVisits = 5

joinTeam<ClientsSetup, ClientsOrder, ClientsReport>(async (setup, member) => {
  const { clients, seed, guarded } = setup
  const beforeBytes = process.memoryUsage.rss()
  const numbers = Array.from({ length: clients }, (_, index) => member * clients + index)
  const visits = new Map<number, number[]>(numbers.map((number) => [number, []]))
  const told: Record<string, number> = {}
  const pools = new Map<number, Pool>()
  const left = [...numbers]
  const dial = async (): Promise<void> => {
    for (let number = left.pop(); number !== undefined; number = left.pop()) {
      const held = setup.heldBack !== undefined && Math.floor(number / 8) % 4 === 0
      const pool = await openPool(held ? (setup.heldBack as string) : setup.url, 1)
      pools.set(number, timed(pool, visits.get(number) as number[]))
    }
  }
  await Promise.all(Array.from({ length: dialling }, dial))

  return {
    async ready({ seconds }) {
      const works = numbers.map((number) => ({
        number,
        work: workOf(number, pools.get(number) as Pool, guarded, (what, key, amount = 1) => {
          const entry = `${what}|${key}`
          told[entry] = (told[entry] ?? 0) + amount
        }),
      }))
      return async () => {
        const troubles: string[] = []
        const until = performance.now() + seconds * 1_000
        let enoughUs: number | undefined
        /** In the middle of its clients; on a slow machine that takes longer than was planned. */
        const middleVisits = (): number =>
          quantile(
            [...visits.values()].map((t) => t.length / 2),
            0.5,
          )
        const used: number[] = []
        const looking = setInterval(() => {
          used.push(process.memoryUsage.rss())
          if (
            enoughUs === undefined &&
            performance.now() > until &&
            middleVisits() >= leastVisits
          ) {
            enoughUs = nowUs()
          }
        }, 100)
        await Promise.all(
          works.map(async ({ number, work }) => {
            for (let at = 0; enoughUs === undefined; at += 1) {
              try {
                await work(randomFor(seed, number * 10_000 + at), `${number}-${at}`)
              } catch (error) {
                troubles.push(String(error))
              }
            }
          }),
        )
        clearInterval(looking)
        const half = Math.ceil(used.length / 2)
        return {
          enoughUs: enoughUs ?? nowUs(),
          visits: [...visits],
          told,
          troubles,
          beforeBytes,
          peakBytes: [Math.max(...used.slice(0, half)), Math.max(...used.slice(half))],
        }
      }
    },
    close: async () => {
      await Promise.all([...pools.values()].map((pool) => pool.end()))
    },
  }
})

/** Notes when a connection was asked for and when it was given back: a wait in the pooler, and the work. */
function timed(pool: Pool, visits: number[]): Pool {
  const connect = async (): Promise<PoolClient> => {
    const askedUs = nowUs()
    const client = await pool.connect()
    const release = client.release.bind(client)
    client.release = (destroy) => {
      visits.push(askedUs, nowUs())
      release(destroy)
    }
    return client
  }
  return Object.assign(Object.create(pool) as Pool, { connect })
}

/** Alike in all processes of the machine. */
function nowUs(): number {
  return Number(process.hrtime.bigint() / 1_000n)
}
