/** The shop with its races gone: what races has a lock of its own, which is kept until the answer is known. */
import type { Pool } from 'pg'
import { racy } from './answers.ts'
import type { Route, Routes } from './shop.ts'
import { transaction } from './transaction.ts'

/** The same routes; those that race with each other one after the other. */
export function withoutRaces(routes: Routes, pool: Pool): Routes {
  return Object.fromEntries(
    Object.entries(routes).map(([name, route]): [string, Route] => {
      const lock = lockOf(name)
      if (lock === undefined) return [name, route]
      return [
        name,
        (body) =>
          transaction(pool, async (client) => {
            await client.query('SELECT pg_advisory_xact_lock(hashtext($1))', [lock])
            return route(body)
          }),
      ]
    }),
  )
}

/** `/orders` for all that is done to orders; undefined of what races with nothing. */
function lockOf(name: string): string | undefined {
  return racy.flat().includes(name) ? name.split('/')[1] : undefined
}
