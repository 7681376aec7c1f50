import type { Row } from '../../../packages/holdfast/src/core/driver.ts'
import type { Holdfast } from '../../../packages/holdfast/src/mysql.ts'
import type { OwnCall } from './model.ts'
import type { Attempt } from './record.ts'

/** A client, behind common names; `Tx` is its own handle and known to nobody else. */
export interface BodyClient<Tx = unknown> {
  /** One statement on the handle, by the client's own call. */
  run(tx: Tx, text: string): Promise<readonly Row[]>
  /** The same by another call, as far as it has one. */
  other(tx: Tx, text: string): Promise<unknown>
  /** The same on the client beneath an ORM, as far as it can be reached. */
  beneath(tx: Tx, text: string): Promise<unknown>
  /** A statement that is prepared now and run later, as far as the client has such. */
  prepare?(tx: Tx, text: string): Promise<() => Promise<unknown>>
  /** Begins or ends a transaction by a call of its own, if it has one. */
  own?(tx: Tx, what: OwnCall): Promise<unknown> | undefined
  /** One statement on the root client, beside every transaction. */
  root(text: string): Promise<readonly Row[]>
  /** A savepoint by the client's own call; by hand where it has none. */
  nested(tx: Tx, body: (inner: Tx) => Promise<void>): Promise<void>
  end(): Promise<void>
}

/** Where bodies run one after the other: a database, a client, and connections that look on. */
export interface Lane extends AsyncDisposable {
  readonly client: BodyClient
  readonly hf: Holdfast<unknown>
  /** Makes what a body of this id needs to be there. */
  prepare(id: string): Promise<void>
  /** How the server numbers the connection of a handle; 0 where there is no server. */
  connectionOf(tx: unknown): Promise<number>
  /** One of the errors of the vocabulary, on the handle. */
  error(tx: unknown, what: string, attempt: Attempt): Promise<void>
  /** Ends a connection; resolves when it is gone. */
  kill(attempt: Attempt): Promise<void>
  /** Ids of writes that everybody can see: those of these bodies, and those of rows that were updated. */
  seen(ids: readonly string[]): Promise<ReadonlySet<string>>
  /** Whether another session could take the lock of this key now. */
  isFree(key: unknown): Promise<boolean>
  /** Whether another session could lock the row of this id now. */
  isRowFree(id: string): Promise<boolean>
  /** What is left open when everybody should be idle; empty if all is well. */
  leftovers(): Promise<string>
  /** How the settings of connections differ from those of fresh ones; empty if they do not. */
  changedSettings(): Promise<string>
  /** Another client on new connections, for when the old one is in doubt. */
  reopen(): Promise<void>
}
