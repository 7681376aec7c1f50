import type { Leader, LeaderOptions } from '../../packages/holdfast/src/leases/leader.ts'
import type { Leases } from '../../packages/holdfast/src/leases/leases.ts'
import { isInnodb } from '../engines/engine.ts'

/** What of Holdfast the attack uses, whatever the product is. */
export interface LeaseFace<Tx> {
  readonly leases: Pick<Leases<Tx>, 'acquire' | 'tryAcquire' | 'read'>
  leader(options: Pick<LeaderOptions, 'name' | 'ttl'>): Pick<Leader<Tx>, 'run'>
  transaction<T>(body: (tx: Tx) => Promise<T>): Promise<T>
}

/** Leases, and what holders of them have written, in words that are the same for all products. */
export interface LeaseStore<Tx> extends AsyncDisposable {
  /** Another one each time: callers of two are two applications. */
  open(): LeaseFace<Tx>
  /** A leader by a lock of its session; only of PostgreSQL. */
  leaderBySession?(options: Pick<LeaderOptions, 'name' | 'ttl'>): Pick<Leader<Tx>, 'run'>
  /** Makes the tables. */
  prepare(): Promise<void>
  write(tx: Tx, lease: string, token: bigint): Promise<void>
  /** The control: the token as anybody may look it up, without a lock. */
  lookAt(tx: Tx, lease: string): Promise<string | undefined>
  /** Writes of a holder that came after one of its successor's. */
  staleWrites(): Promise<number>
  forgetWrites(): Promise<void>
}

/** Opens so many connections. The URL says of which product it is. */
export async function openLeaseStore(url: string, size: number): Promise<LeaseStore<unknown>> {
  const opened = isInnodb(url)
    ? (await import('./lease-innodb.ts')).innodbLeaseStore(url, size)
    : await (await import('./lease-postgres.ts')).postgresLeaseStore(url, size)
  return opened as LeaseStore<unknown>
}
