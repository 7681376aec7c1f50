import type { Claims } from '../../packages/holdfast/src/claims/claims.ts'
import { isInnodb } from '../engines/engine.ts'
import type { TaskRow } from './claims-table.ts'

export interface Look {
  readonly left: number
  /** How long ago the oldest lease ended that nobody has swept. */
  readonly overdue: number
  /** Claims whose lease is over and whose rows nobody has locked. */
  readonly tokens: readonly string[]
  /** Milliseconds, by the server's clock. */
  readonly now: number
  readonly duplicates: number
}

export interface Found {
  readonly duplicates: number
  readonly missing: number
  readonly recovered: number
  readonly displaced: number
  /**
   * How long after a row that is more than a window behind it one was claimed. Only where a claim is several statements: a
   * process that is paused in one keeps its rows locked, and others pass them over.
   */
  readonly overtakenMs?: number
}

/** Tasks and their effects in a database, in words that are the same for all products. */
export interface ClaimsStore<Tx> extends AsyncDisposable {
  readonly claims: Pick<Claims<Tx, TaskRow>, 'claim' | 'complete' | 'recover' | 'run'>
  /** Makes the tables, with so many tasks. */
  fill(tasks: number): Promise<void>
  look(duplicatesToo: boolean): Promise<Look>
  /** Rows may be under way in a window of so many. */
  findings(window: number): Promise<Found>
  transaction(body: (tx: Tx) => Promise<void>): Promise<void>
  effects(tx: Tx, ids: readonly string[]): Promise<void>
  /** What most do: by id, and by the status, which is true again for the next owner. */
  finishUnfenced(tx: Tx, ids: readonly string[]): Promise<void>
}

/** Opens at most so many connections. The URL says of which product it is. */
export async function openClaimsStore(url: string, size: number): Promise<ClaimsStore<unknown>> {
  const opened = isInnodb(url)
    ? (await import('./claims-innodb.ts')).innodbClaimsStore(url, size)
    : (await import('./claims-postgres.ts')).postgresClaimsStore(url, size)
  return opened as ClaimsStore<unknown>
}
