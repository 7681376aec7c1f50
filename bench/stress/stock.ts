import { startPostgres, withClient } from '@holdfast/testkit'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast } from '../../packages/holdfast/src/index.ts'
import { migrateFiles } from '../../packages/holdfast/src/schema/migrate.ts'
import { ownFiles, type SchemaFiles } from '../../packages/holdfast/src/schema/schema-files.ts'
import { type Budget, rounds, seconds as lasting } from '../harness/budget.ts'
import { counted } from '../harness/counted.ts'
import { deadlocksIn } from '../harness/deadlocks-in.ts'
import { openPool } from '../harness/open-pool.ts'
import type { StressScenario } from '../harness/stress-scenario.ts'
import { startTeam, type Team } from '../harness/team.ts'
import { auditOf } from '../ledger/audit-of.ts'
import { weakenedFiles } from '../ledger/weakened-files.ts'
import { unsortedOrders } from './stock-by-hand.ts'
import { linesPerOrder, opening, skus } from './stock-orders.ts'

export const stockName = 'shop'

export interface StockSetup {
  readonly seed: number
  readonly callers: number
}

export interface StockRound {
  readonly url: string
  readonly round: number
  readonly ordersPerCaller: number
}

export interface StockReport {
  readonly accepted: number
  readonly refused: number
  /** Errors, deadlocks among them; there should be none. */
  readonly troubles: readonly string[]
}

const openingId = 'opening'
const processes = 2
const callers = 32
const ordersPerCaller = 10
const fullSeconds = 60
/** Of `--seconds`; the rest is for starting and for the controls. */
const ordersShare = 0.5

export const stock: StressScenario = {
  about: `orders of ${linesPerOrder} among ${skus} articles, a few of which everyone wants`,
  async run({ seconds, seed, progress }) {
    progress('starting PostgreSQL')
    await using server = await startPostgres({
      // Deadlocks of the control are to be found at once; whatever hangs is to fail.
      settings: { deadlock_timeout: '20ms', statement_timeout: '300s' },
    })
    const url = await server.createDatabase('stock')
    const weakUrl = await server.createDatabase('weakened')
    const violations: string[] = []
    let shop: Trade
    let weak: Trade
    {
      await using team = await startTeam<StockSetup, StockRound, StockReport>(
        new URL('./stock-callers.ts', import.meta.url),
        processes,
        { seed, callers },
      )
      const budget = lasting(seconds === undefined ? fullSeconds : seconds * ordersShare)
      shop = await trade(team, url, ownFiles(), budget, progress)
      weak = await trade(team, weakUrl, weakenedFiles('guard'), rounds(1), progress)
    }
    violations.push(...counted(shop.troubles), ...shop.partial)
    if (shop.oversold > 0) violations.push(`${shop.oversold} movements went below zero`)
    const deadlocks = await deadlocksIn(url)
    if (deadlocks > 0) violations.push(`the server counted ${deadlocks} deadlocks`)
    const unsorted = await unsortedOrders(await server.createDatabase('unsorted'), seed)
    return {
      operations: shop.accepted + shop.refused,
      violations,
      controls: {
        no_guard: weak.oversold > 0 ? 'caught' : 'missed',
        unsorted: unsorted.deadlocks > 0 ? 'caught' : 'missed',
      },
      notes: [
        `${processes} processes with ${callers} callers each: ${shop.accepted} orders and receipts ` +
          `accepted, ${shop.refused} refused, ${shop.movements} movements checked`,
        `no_guard: ${weak.oversold} movements went below zero`,
        `unsorted: ${unsorted.deadlocks} deadlocks after ${unsorted.operations} orders by hand`,
      ],
    }
  },
}

interface Trade {
  readonly accepted: number
  readonly refused: number
  readonly movements: number
  readonly oversold: number
  readonly partial: readonly string[]
  readonly troubles: readonly string[]
}

async function trade(
  team: Team<StockRound, StockReport>,
  url: string,
  files: SchemaFiles,
  budget: Budget,
  progress: (text: string) => void,
): Promise<Trade> {
  await openShop(url, files)
  let [accepted, refused] = [0, 0]
  const troubles: string[] = []
  for (let round = 0; budget.allows(round); round += 1) {
    for (const report of await team.round({ url, round, ordersPerCaller })) {
      accepted += report.accepted
      refused += report.refused
      troubles.push(...report.troubles)
    }
    if (round % 10 === 0) progress(`stock: round ${round + 1}, ${accepted + refused} orders so far`)
  }
  return { accepted, refused, troubles, ...(await takeStock(url)) }
}

/** Everything on the shelves, by movements as well. */
async function openShop(url: string, files: SchemaFiles): Promise<void> {
  const pool = await openPool(url, 1)
  try {
    const driver = fromPg(pool)
    await migrateFiles(driver, files)
    await pool.query('CREATE TABLE orders (id text PRIMARY KEY)')
    await pool.query(
      'CREATE UNLOGGED TABLE placed (id text, lines int, joined boolean, cart boolean)',
    )
    const lines = Array.from({ length: skus }, (_, at) => ({
      sku: `sku-${at}`,
      quantity: opening,
    }))
    const shelves = createHoldfast(driver).stock({ name: stockName })
    const { ok } = await shelves.receive(lines, { externalId: openingId })
    if (!ok) throw new Error('the shelves could not be filled')
  } finally {
    await pool.end()
  }
}

/** What the tables say, movement by movement. */
async function takeStock(url: string): Promise<Pick<Trade, 'movements' | 'oversold' | 'partial'>> {
  return await withClient(url, async (client) => {
    const { rows: sums } = await client.query<{ movements: number; oversold: number }>(`
      SELECT count(*)::int AS movements,
        (count(*) FILTER (WHERE credited - debited - held + allowance < 0))::int AS oversold
      FROM holdfast.movement`)
    const partial: string[] = []
    for (const [what, sql] of Object.entries(partialChecks)) {
      const { rows } = await client.query<{ cases: number; example: string | null }>(
        `SELECT count(*)::int AS cases, min(x.id) AS example FROM (${sql}) x`,
      )
      const [row] = rows
      if (row !== undefined && row.cases > 0) {
        partial.push(`${row.cases} ${what}, as ${row.example}`)
      }
    }
    const { found, problems } = await auditOf(url)
    if (found > 0) partial.push(`audit() found ${found}, as ${JSON.stringify(problems[0])}`)
    return { movements: sums[0]?.movements ?? 0, oversold: sums[0]?.oversold ?? 0, partial }
  })
}

const partialChecks: Readonly<Record<string, string>> = {
  'orders have other movements than the lines their customer was told of': `
    SELECT coalesce(p.id, m.operation_id) AS id
    FROM placed p
    FULL JOIN (
      SELECT operation_id, count(*) AS lines FROM holdfast.movement
      WHERE kind NOT IN (4, 5) AND operation_id <> '${openingId}' GROUP BY 1
    ) m ON m.operation_id = p.id
    WHERE p.lines IS DISTINCT FROM m.lines`,
  'carts were bought or left in part': `
    SELECT coalesce(p.id, m.operation_id) AS id
    FROM (SELECT * FROM placed WHERE cart) p
    FULL JOIN (
      SELECT operation_id, count(*) AS lines, count(DISTINCT kind) AS ends FROM holdfast.movement
      WHERE kind IN (4, 5) GROUP BY 1
    ) m ON m.operation_id = p.id
    WHERE p.lines IS DISTINCT FROM m.lines OR m.ends <> 1`,
  'orders are there without their stock, or stock is gone without its order': `
    SELECT coalesce(o.id, p.id) AS id FROM orders o
    FULL JOIN (SELECT id FROM placed WHERE joined) p ON p.id = o.id
    WHERE o.id IS NULL OR p.id IS NULL`,
  'shelves do not follow from their movements': `
    SELECT b.account::text AS id FROM holdfast.balance b
    LEFT JOIN (
      SELECT account, sum(credit) AS credited, sum(debit) AS debited, sum(hold) AS held, count(*) AS seq
      FROM holdfast.movement GROUP BY 1
    ) m ON m.account = b.account
    WHERE (b.credited, b.debited, b.held, b.seq) IS DISTINCT FROM (m.credited, m.debited, m.held, m.seq)`,
}
