import type { Holdfast } from '../../packages/holdfast/src/mysql.ts'
import { isInnodb } from '../engines/engine.ts'

/** An account as somebody has read it. */
export interface Account {
  readonly v: number
  readonly version: number
}

/** Accounts, each with a line for every change, in words that are the same for all products. */
export interface RowStore<Tx> extends AsyncDisposable {
  readonly hf: Pick<Holdfast<Tx>, 'rows' | 'transaction'>
  prepare(accounts: number): Promise<void>
  read(tx: Tx, account: number): Promise<Account>
  /** Without a look at the version. */
  write(tx: Tx, account: number, v: number): Promise<void>
  line(tx: Tx, account: number, id: string): Promise<void>
  /** What is there, by somebody who looks on. */
  accounts(): Promise<readonly (Account & { readonly lines: number })[]>
  /** Which of these lines are there. */
  linesOf(ids: readonly string[]): Promise<ReadonlySet<string>>
}

/** Opens so many connections. The URL says of which product it is. */
export async function openRowStore(url: string, size: number): Promise<RowStore<unknown>> {
  const opened = isInnodb(url)
    ? (await import('./rows-innodb.ts')).innodbRowStore(url, size)
    : await (await import('./rows-postgres.ts')).postgresRowStore(url, size)
  return opened as unknown as RowStore<unknown>
}
