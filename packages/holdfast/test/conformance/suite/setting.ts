import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { setImmediate as turnOfLoop } from 'node:timers/promises'
import { waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import { createLocks, type Locks } from '../../../src/entries/locks.ts'
import { testDatabase } from '../../support/database.ts'
import type { Harness } from './harness.ts'

/** Rows of `late` are checked at COMMIT; those of `refused` raise their state there; rows of `slow` make COMMIT wait for an advisory lock. */
const schema = `
  CREATE TABLE account (id text PRIMARY KEY, balance int NOT NULL);
  CREATE TABLE late (id text UNIQUE DEFERRABLE INITIALLY DEFERRED);
  CREATE TABLE refused (state text);
  CREATE FUNCTION refuse_at_commit() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN RAISE EXCEPTION USING ERRCODE = NEW.state, MESSAGE = ''no''; END';
  CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON refused DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION refuse_at_commit();
  CREATE TABLE slow (id int);
  CREATE FUNCTION wait_at_commit() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM pg_advisory_xact_lock_shared(NEW.id); RETURN NULL; END';
  CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON slow DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION wait_at_commit()`

/** One database, one client under test, and `pg` beside it to look and to get in the way. */
export interface Setting<Tx, H extends Harness<Tx> = Harness<Tx>> {
  url: string
  harness: H
  /** Never part of what is tested. */
  observer: pg.Pool
  locks: Locks<Tx>
  /** Another client of the same kind, for tests that break it. */
  another(url?: string): Promise<H>
  /** A session of `pg` inside a transaction, for blocking others; rolled back after the test. */
  rival(): Promise<pg.PoolClient>
  balance(id: string): Promise<number | undefined>
  /** A fresh account, and its id. */
  account(balance: number): Promise<string>
}

export function setting<Tx, H extends Harness<Tx>>(
  open: (url: string) => Promise<H>,
): Setting<Tx, H> {
  const made = {} as Setting<Tx, H>
  let accounts = 0
  beforeAll(async () => {
    const { url, directUrl } = await testDatabase()
    const observer = new pg.Pool({ connectionString: directUrl, max: 8 })
    await observer.query(schema)
    const harness = await open(url)
    Object.assign(made, {
      url,
      harness,
      observer,
      // Here guards are to meet on the server, and not in this process.
      locks: createLocks(harness.driver, { watch: false, queue: false }),
      async another(otherUrl = url) {
        const other = await open(otherUrl)
        onTestFinished(async () => await other.end())
        return other
      },
      async rival() {
        const client = await observer.connect()
        await client.query('BEGIN')
        onTestFinished(async () => {
          await client.query('ROLLBACK')
          client.release()
        })
        return client
      },
      async balance(id: string) {
        const { rows } = await observer.query<{ balance: number }>(
          'SELECT balance FROM account WHERE id = $1',
          [id],
        )
        return rows[0]?.balance
      },
      async account(balance: number) {
        accounts += 1
        const id = `account-${accounts}`
        await observer.query('INSERT INTO account VALUES ($1, $2)', [id, balance])
        return id
      },
    })
  })
  afterAll(async () => {
    await made.harness.end()
    await made.observer.end()
  })
  return made
}

/** The backend that serves a transaction. */
export async function pidOf<Tx>(harness: Harness<Tx>, tx: Tx): Promise<number> {
  const [row] = await harness.run(tx, 'SELECT pg_backend_pid() AS pid')
  return Number(row?.['pid'])
}

/** The one backend of this database that waits for an advisory lock, once it does. */
export async function waitingForLock(observer: pg.Pool): Promise<number> {
  return await waitUntil('someone waits for a lock', async () => {
    const { rows } = await observer.query<{ pid: number }>(
      `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
    )
    return rows[0]?.pid
  })
}

/** Ends a backend and waits until it is gone. */
export async function terminate(observer: pg.Pool, pid: number): Promise<void> {
  await observer.query('SELECT pg_terminate_backend($1)', [pid])
  await waitUntil('the backend is gone', async () => {
    const { rows } = await observer.query('SELECT FROM pg_stat_activity WHERE pid = $1', [pid])
    return rows.length === 0 || undefined
  })
}

/** Follows the connections this process opens from now on, until the test ends. */
export function watchSockets(): { closed(port: number): Promise<void> } {
  const sockets = new Map<number | undefined, Socket>()
  const opened = (message: unknown): void => {
    const { socket } = message as { socket: Socket }
    socket.once('connect', () => sockets.set(socket.localPort, socket))
  }
  const name = 'net.client.socket'
  subscribe(name, opened)
  onTestFinished(() => void unsubscribe(name, opened))
  return {
    /** Resolves once that one is closed and whoever listens has been told. */
    async closed(port) {
      await waitUntil('the client has noticed', () => sockets.get(port)?.closed || undefined)
      await turnOfLoop()
    },
  }
}

/** The client's end of a connection, as the server sees it. */
export async function portOf(observer: pg.Pool, pid: number): Promise<number> {
  const { rows } = await observer.query<{ client_port: number }>(
    'SELECT client_port FROM pg_stat_activity WHERE pid = $1',
    [pid],
  )
  return rows[0]?.client_port as number
}

/** The rejection of a promise; a promise that resolves is the failure here. */
export async function rejection(promise: Promise<unknown>): Promise<Error & { code?: string }> {
  try {
    await promise
  } catch (error) {
    return error as Error & { code?: string }
  }
  throw new Error('expected a rejection, and it resolved')
}
