import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Pool, PoolClient } from 'pg'
import { createConsole } from '../../packages/console/src/index.ts'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../packages/holdfast/src/index.ts'
import { migrate } from '../../packages/holdfast/src/schema/index.ts'
import { tableText } from '../../packages/holdfast/test/support/claims-table.ts'
import { openPool } from '../harness/open-pool.ts'
import { randomFor } from '../harness/random.ts'
import { hostileCall, type Made } from './hostile-calls.ts'
import { hostileCommand, hostileIdempotency, hostileRequest } from './hostile-outside.ts'
import { Names } from './hostile-twins.ts'

export interface AttackOrder {
  readonly url: string
  readonly seed: number
  readonly count: number
  readonly seconds: number | undefined
  /** Ends with the first finding. */
  readonly first: boolean
}

export interface Attacked {
  readonly calls: number
  readonly wrong: readonly string[]
  readonly coverage: Readonly<Record<string, Readonly<Record<string, number>>>>
}

const lanes = 8
/** After so many calls it is looked whether anything was executed. */
const lookEvery = 1_000
/** What a process may have more at the end than after the first tenth; findings of one call are kept as text. */
const growthMb = 60
const token = 'operate-h3Wd9mQ1sJ6uTf4aKo7y'

/** Generated calls through every way in, each judged. */
export async function attack(
  { url, seed, count, seconds = Infinity, first }: AttackOrder,
  progress: (text: string) => void,
): Promise<Attacked> {
  const pool = await openPool(url, 2 * lanes + 4)
  // What others notice belongs to them.
  pool.on('error', () => undefined)
  await prepare(pool)
  const hf = createHoldfast(fromPg(pool), { wait: 500 })
  const console = createConsole({
    driver: fromPg(pool),
    auth: { tokens: [{ name: 'operate', role: 'operate', token }] },
    actions: ['cancel', 'terminate'],
    audit: () => undefined,
  })
  const names = new Names(hf)
  const wrong = new Map<string, string>()
  const ways: Record<string, number> = {}
  const sorts: Record<string, number> = {}
  const until = performance.now() + seconds * 1_000
  let [next, calls, early] = [0, 0, 0]
  const isOver = (): boolean =>
    next >= count || performance.now() > until || (first && wrong.size > 0)
  const note = ({ path, sort, wrong: found }: Made, at: number): void => {
    ways[path] = (ways[path] ?? 0) + 1
    sorts[sort] = (sorts[sort] ?? 0) + 1
    // One of a kind is enough, with the number that makes it again.
    if (found !== undefined && !wrong.has(found.slice(0, 60))) {
      wrong.set(found.slice(0, 60), `call ${at}: ${found}`)
    }
  }
  const lane = async (tx: PoolClient): Promise<void> => {
    while (!isOver()) {
      const at = next++
      note(await one(at, tx), at)
      calls += 1
      if (calls % lookEvery === 0) {
        const executed = await executedIn(pool)
        if (executed !== undefined) wrong.set(executed, executed)
        if (early === 0 && calls >= count / 10) early = heapMb()
        progress(`${calls} calls, ${wrong.size} findings`)
      }
    }
  }
  const one = async (at: number, tx: PoolClient): Promise<Made> => {
    const random = randomFor(seed, at)
    const way = random.integer(0, 99)
    if (way < 2) return await hostileCommand(random, url)
    if (way < 8) return await hostileRequest(random, console, token)
    if (way < 12) return await hostileIdempotency(random, hf)
    if (way < 25) {
      return { path: 'twins', sort: 'none', wrong: await names.use(random, `twin-${seed}-${at}`) }
    }
    return await hostileCall(random, hf, tx)
  }
  const clients = await Promise.all(Array.from({ length: lanes }, () => pool.connect()))
  await Promise.all(clients.map(lane))
  for (const client of clients) client.release(true)
  for (const found of await names.wrong()) wrong.set(found, found)
  const executed = await executedIn(pool)
  if (executed !== undefined) wrong.set(executed, executed)
  const grown = heapMb() - early
  if (early > 0 && grown > growthMb) wrong.set('growth', `the heap has grown by ${grown} MB`)
  console.close()
  await hf.close({ within: 1 })
  await pool.end()
  return { calls, wrong: [...wrong.values()], coverage: { ways, sorts } }
}

async function prepare(pool: Pool): Promise<void> {
  await migrate(fromPg(pool))
  await pool.query(`CREATE TABLE canary (n int NOT NULL); INSERT INTO canary VALUES (0);
    ${tableText('job')}; CREATE TABLE work (id bigint PRIMARY KEY, version int NOT NULL DEFAULT 1);
    INSERT INTO work VALUES (1)`)
}

/** Whether a text was taken for a statement. */
async function executedIn(pool: Pool): Promise<string | undefined> {
  const { rows } = await pool.query(
    `SELECT (SELECT n FROM canary) AS n, to_regclass('public.pwned') IS NOT NULL AS pwned`,
  )
  const [{ n, pwned }] = rows as [{ n: number; pwned: boolean }]
  return n === 0 && !pwned ? undefined : 'a text was executed'
}

function heapMb(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  return Math.round(process.memoryUsage().heapUsed / 1e6)
}
