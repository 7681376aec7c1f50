/** What blocks about the console may take for granted. */
import type { ConsoleAuth } from '../../../../console/src/index.ts'
import type { PoolClient } from 'pg'
import type { Driver } from 'holdfast'
import { fromPg, pool } from './pg.ts'

export { createConsole } from '../../../../console/src/index.ts'
export { close, hf, pool } from './pg.ts'

export const driver: Driver<PoolClient> = fromPg(pool)
export const viewToken = 'a'.repeat(32)
export const operateToken = 'b'.repeat(32)
export const auth: ConsoleAuth = { tokens: [{ name: 'x', role: 'view', token: viewToken }] }

export function userOf(
  _request: Request,
): Promise<{ readonly email: string; readonly isAdmin: boolean } | undefined> {
  return Promise.resolve({ email: 'ada@example.com', isAdmin: true })
}

export function log(_entry: object): Promise<void> {
  return Promise.resolve()
}
