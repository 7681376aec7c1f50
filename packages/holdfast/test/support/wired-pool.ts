import pg from 'pg'
import { onTestFinished } from 'vitest'
import { type BreakableWire, breakableWire } from './breakable-wire.ts'

/** A pool that reaches a server through a wire of its own, until the test is over. */
export async function wiredPool(
  url: string,
  max: number,
): Promise<{ readonly wire: BreakableWire; readonly pool: pg.Pool }> {
  const wire = await breakableWire(url)
  const pool = new pg.Pool({ connectionString: wire.url, max })
  pool.on('error', () => undefined)
  onTestFinished(async () => {
    wire.release()
    wire.cut()
    await pool.end()
    await wire[Symbol.asyncDispose]()
  })
  return { wire, pool }
}
