import { sqlStateOf } from '../../packages/holdfast/src/core/sql-state.ts'
import { type Budget, seconds } from '../harness/budget.ts'
import { deadlocksIn } from '../harness/deadlocks-in.ts'
import { openPool } from '../harness/open-pool.ts'
import { opening, orderFor, skus } from './stock-orders.ts'

const callers = 64
const connections = 32
const deadlock = '40P01'
/** It ends at its first deadlock, which takes it a fraction of this. */
const controlSeconds = 20

/**
 * The same orders as guarded updates, each in one transaction, in the order in which the customer
 * picked the articles. Never oversold, but two such orders wait for each other.
 */
export async function unsortedOrders(
  url: string,
  seed: number,
): Promise<{ operations: number; deadlocks: number }> {
  const pool = await openPool(url, connections)
  let [started, seen] = [0, 0]
  const time = seconds(controlSeconds)
  const budget: Budget = { allows: (done) => seen === 0 && time.allows(done) }
  const order = async (number: number): Promise<void> => {
    const client = await pool.connect()
    try {
      await client.query('BEGIN')
      let complete = true
      for (const { sku, quantity } of orderFor(seed, number).lines) {
        const { rowCount } = await client.query(
          'UPDATE shelf SET quantity = quantity - $2 WHERE sku = $1 AND quantity >= $2',
          [sku, quantity],
        )
        complete &&= rowCount === 1
      }
      await client.query(complete ? 'COMMIT' : 'ROLLBACK')
    } catch (error) {
      if (sqlStateOf(error) !== deadlock) throw error
      seen += 1
      await client.query('ROLLBACK')
    } finally {
      client.release()
    }
  }
  const caller = async (): Promise<void> => {
    while (budget.allows(started)) {
      started += 1
      await order(started)
    }
  }
  try {
    await pool.query('CREATE TABLE shelf (sku text PRIMARY KEY, quantity int NOT NULL)')
    await pool.query(
      `INSERT INTO shelf SELECT 'sku-' || n, $2 FROM generate_series(0, $1::int - 1) AS n`,
      [skus, opening],
    )
    await Promise.all(Array.from({ length: callers }, caller))
  } finally {
    await pool.end()
  }
  return { operations: started, deadlocks: await deadlocksIn(url) }
}
