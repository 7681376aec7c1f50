import type { Driver, Isolation, Row } from '../../../src/core/driver.ts'

/** A handle that looks like a transaction and is none, for as long as `use` runs. */
export type LookAlike<Tx> = (use: (handle: Tx) => Promise<void>) => Promise<void>

/** What we believe about a client itself; the suite proves it, so that docs/drivers.md is true. */
export interface Facts {
  /** Its own transaction resolves although PostgreSQL rolled back. */
  readonly silentRollback: boolean
  /** What `join(tx).state()` says of an open transaction of the caller's. */
  readonly openState: 'open' | 'unknown'
  /** What it says of one that we have opened; `open` unless told otherwise. */
  readonly ownState?: 'unknown'
  /** The SQLSTATE that reaches the caller when the backend is killed under a running statement. */
  readonly killedState: '57P01' | undefined
  /** Whether the client has a savepoint call of its own, so that an open one can be told. */
  readonly savepoints: { readonly isCounted: boolean }
  /** What the client itself says of a handle from the moment on that it sends COMMIT, if it does. */
  readonly endedWords?: RegExp
  /** Round trips on a direct connection, when warm: of an empty guard, and of one acquisition. */
  readonly roundTrips: { readonly guard: number; readonly acquire: number }
}

/** Everything the suite needs to know about one client: its own calls, behind common names. */
export interface Harness<Tx> {
  readonly driver: Driver<Tx>
  readonly facts: Facts
  /** Where this client puts the SQLSTATE of a failed statement, as docs/drivers.md says. */
  sqlStateAt(error: never): unknown
  /** What `fromX` makes of a transaction in the place of the root client; absent where they are not alike. */
  driverOn?(tx: Tx): Driver<unknown>
  /** One statement, by the client's own call. */
  run(handle: Tx, text: string): Promise<readonly Row[]>
  /** The same, not sent yet: clients that send when somebody waits. Absent where a call sends at once. */
  unsent?(handle: Tx, text: string): PromiseLike<unknown>
  /** A transaction, by the client's own call. */
  own<T>(body: (tx: Tx) => Promise<T>, isolation?: Isolation): Promise<T>
  /** A savepoint, by the client's own call. */
  savepoint(tx: Tx, body: (inner: Tx) => Promise<void>): Promise<void>
  /** Reads the first row of several, and leaves the rest; absent where the client has no such call. */
  leaveOpen?(tx: Tx): Promise<void>
  /** Begins to send rows by COPY, and leaves it at that. */
  leaveCopying?(tx: Tx): Promise<void>
  readonly lookAlikes: Readonly<Record<string, LookAlike<Tx>>>
  end(): Promise<void>
}
