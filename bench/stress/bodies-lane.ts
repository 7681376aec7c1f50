import { setTimeout as pause } from 'node:timers/promises'
import { createDatabase, databaseOf, urlWithDatabase, waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import type { Row } from '../../packages/holdfast/src/core/driver.ts'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { createHoldfast, type Holdfast } from '../../packages/holdfast/src/index.ts'
import { migrate } from '../../packages/holdfast/src/schema/index.ts'
import { type BodyClient, openBodyClient, poolSize } from './bodies-clients.ts'
import type { Place } from './bodies-model.ts'

/** Where bodies run one after the other: a database, a client, and a plain connection that looks on. */
export interface Lane extends AsyncDisposable {
  readonly place: Place
  readonly client: BodyClient
  readonly hf: Holdfast<unknown>
  /** Never through the pooler, and no part of what is tested. */
  ask(text: string, values?: readonly unknown[]): Promise<readonly Row[]>
  /** Ends a backend; resolves when it is gone. */
  kill(pid: number): Promise<void>
  /** What is left open in the database when everybody should be idle; empty if all is well. */
  leftovers(): Promise<string>
  /** How the settings of pooled connections differ from those of a fresh one; empty if they do not. */
  changedSettings(): Promise<string>
  /** Another client on new connections, for when the old one is in doubt. */
  reopen(): Promise<void>
}

export interface Servers {
  readonly directUrl: string
  readonly pooledUrl: string
  /** Where each lane works; nobody else does meanwhile. */
  readonly databases: readonly string[]
}

/** Every insert says by which transaction it was made, and whether that held the lock. */
const tables = `
  CREATE FUNCTION public.own_lock(key bigint) RETURNS boolean LANGUAGE sql AS $$
    SELECT EXISTS (
      SELECT FROM pg_catalog.pg_locks
      WHERE locktype = 'advisory' AND pid = pg_catalog.pg_backend_pid() AND granted AND objsubid = 1
        AND ((classid::int8 << 32) | objid::int8) = key) $$;
  CREATE TABLE public.written (
    id text PRIMARY KEY, body text NOT NULL, held boolean,
    pid int NOT NULL DEFAULT pg_backend_pid(),
    began text NOT NULL DEFAULT extract(epoch FROM now())::text);
  CREATE INDEX ON public.written (body);
  CREATE TABLE public.doc (
    id text PRIMARY KEY, version int NOT NULL DEFAULT 1, note text,
    pid int, began text);
  CREATE FUNCTION public.sign() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    NEW.pid := pg_catalog.pg_backend_pid();
    NEW.began := extract(epoch FROM pg_catalog.now())::text;
    RETURN NEW;
  END $$;
  CREATE TRIGGER sign BEFORE UPDATE ON public.doc FOR EACH ROW EXECUTE FUNCTION public.sign();
`

/** Makes a database for each lane, all alike, and gives their names. */
export async function prepareDatabases(directUrl: string, lanes: number): Promise<string[]> {
  const url = await createDatabase(directUrl, 'bodies')
  const pool = new pg.Pool({ connectionString: url, max: 1 })
  await migrate(fromPg(pool))
  await pool.query(tables)
  await pool.end()
  const template = databaseOf(url)
  const copies = Array.from({ length: lanes }, () => createDatabase(directUrl, 'lane', template))
  return (await Promise.all(copies)).map(databaseOf)
}

/** Of the connections that look on. */
const observerName = 'bodies observer'

const settingsQuery = `SELECT pg_catalog.concat_ws(', ',
  'lock_timeout ' || pg_catalog.current_setting('lock_timeout'),
  'statement_timeout ' || pg_catalog.current_setting('statement_timeout'),
  'application_name ' || pg_catalog.current_setting('application_name'),
  'search_path ' || pg_catalog.current_setting('search_path'),
  'isolation ' || pg_catalog.current_setting('default_transaction_isolation'),
  'read_only ' || pg_catalog.current_setting('default_transaction_read_only'),
  'held ' || coalesce(pg_catalog.current_setting('holdfast.held', true), '')) AS settings`

const leftoversQuery = `SELECT
  (SELECT pg_catalog.string_agg(state, ', ') FROM pg_catalog.pg_stat_activity
   WHERE datname = pg_catalog.current_database() AND application_name <> '${observerName}'
     AND backend_type = 'client backend' AND state <> 'idle') AS busy,
  (SELECT pg_catalog.count(*)::int FROM pg_catalog.pg_locks
   WHERE locktype = 'advisory' AND database =
     (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())) AS locks`

export async function openLane(place: Place, servers: Servers, index: number): Promise<Lane> {
  const database = servers.databases[index]
  if (database === undefined) throw new Error(`there is no database for lane ${index}`)
  const directUrl = urlWithDatabase(servers.directUrl, database)
  const url = urlWithDatabase(place.pooled ? servers.pooledUrl : servers.directUrl, database)
  // One that answers and one that tries locks: a statement of the one never waits behind the other's.
  const observer = new pg.Pool({
    connectionString: directUrl,
    max: 2,
    idleTimeoutMillis: 0,
    application_name: observerName,
  })
  observer.on('error', () => undefined)
  const ask = async (text: string, values: readonly unknown[] = []): Promise<readonly Row[]> =>
    (await observer.query<Row>(text, [...values])).rows
  const open = async (): Promise<Pick<Lane, 'client' | 'hf'>> => {
    const client = await openBodyClient(place, url)
    const hf = createHoldfast(client.driver, {
      resolveFor: '3 s',
      locks: { watch: false, strict: false },
    })
    return { client, hf }
  }
  const poolSettings = async (): Promise<readonly string[]> => {
    const asking = Promise.all(
      Array.from({ length: poolSize }, () => current.client.root(settingsQuery)),
    )
    asking.catch(() => undefined)
    // postgres.js may never answer what it sent on a connection that broke.
    const rows = await Promise.race([asking, pause(5_000)])
    if (rows === undefined) {
      await reopen()
      throw new Error('the client did not answer')
    }
    return rows.map(([row]) => String(row?.['settings']))
  }
  /** Also what the pooler keeps open to the server, with settings of somebody before. */
  const endOthers = async (): Promise<void> => {
    const others = `FROM pg_stat_activity WHERE datname = current_database()
      AND backend_type = 'client backend' AND application_name <> '${observerName}'`
    await ask(`SELECT pg_terminate_backend(pid) ${others}`)
    await waitUntil('the backends are gone', async () => {
      const rows = await ask(`SELECT pid ${others}`)
      return rows.length === 0 || undefined
    })
  }
  const reopen = async (): Promise<void> => {
    const old = current.client
    await Promise.race([old.end().catch(() => undefined), pause(500)])
    await endOthers()
    current = await open()
  }
  await endOthers()
  let current = await open()
  const [baseline] = await poolSettings()
  return {
    place,
    get client() {
      return current.client
    },
    get hf() {
      return current.hf
    },
    ask,
    async kill(pid) {
      await ask('SELECT pg_terminate_backend($1)', [pid])
      await waitUntil('the backend is gone', async () => {
        const rows = await ask('SELECT FROM pg_stat_activity WHERE pid = $1', [pid])
        return rows.length === 0 || undefined
      })
    },
    async leftovers() {
      let left = ''
      // What is left open stays so; a busy machine is only slow.
      const until = performance.now() + 10_000
      for (;;) {
        const [row] = await ask(leftoversQuery)
        const { busy, locks } = row as { busy: string | null; locks: number }
        left = [
          ...(busy === null ? [] : [`sessions: ${busy}`]),
          ...(locks === 0 ? [] : [`${locks} advisory locks`]),
        ].join('; ')
        if (left === '' || performance.now() > until) return left
        await pause(2)
      }
    },
    async changedSettings() {
      for (let attempt = 1; ; attempt += 1) {
        try {
          const changed = (await poolSettings()).find((each) => each !== baseline)
          return changed === undefined ? '' : `${changed}; of a fresh one: ${baseline}`
        } catch (error) {
          // A connection that was killed while it was idle.
          if (attempt === 5) throw error
        }
      }
    },
    reopen,
    async [Symbol.asyncDispose]() {
      await Promise.race([current.client.end().catch(() => undefined), pause(500)])
      await observer.end()
    },
  }
}
