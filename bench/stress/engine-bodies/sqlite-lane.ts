import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  createHoldfast,
  migrate,
  type SqliteDriver,
} from '../../../packages/holdfast/src/sqlite.ts'
import type { BodyClient, Lane } from './lane.ts'
import { openSqlite, type SqliteHandle, sqliteWays } from './sqlite-clients.ts'

export async function sqlitePlaces(): Promise<readonly string[]> {
  return [...(await sqliteWays()).keys()]
}

const tables = `
  CREATE TABLE written (id TEXT PRIMARY KEY, body TEXT NOT NULL);
  CREATE INDEX written_by ON written (body);
  CREATE TABLE doc (id TEXT PRIMARY KEY, version INTEGER NOT NULL DEFAULT 1, note TEXT);
  CREATE TABLE single (id INTEGER PRIMARY KEY);
  INSERT INTO single VALUES (1), (2);
  CREATE TABLE strict_single (id INTEGER PRIMARY KEY ON CONFLICT ROLLBACK);
  INSERT INTO strict_single VALUES (1);
  CREATE TABLE guarded (id INTEGER);
  CREATE TRIGGER refuses BEFORE INSERT ON guarded BEGIN SELECT RAISE(ROLLBACK, 'no'); END;
  CREATE TABLE heavy (body BLOB);
  CREATE TABLE job (id TEXT PRIMARY KEY NOT NULL, batch TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'pending',
    claim_token TEXT, lease_until INTEGER, attempts INTEGER NOT NULL DEFAULT 0);
`

/** Of a connection, as the next user of it finds them. */
const pragmas = ['busy_timeout', 'foreign_keys', 'query_only', 'synchronous', 'max_page_count']

function settingsOf(handle: SqliteHandle): string {
  return pragmas
    .map((name) => {
      const [row] = handle.prepare(`PRAGMA ${name}`).all()
      return `${name} ${String(Object.values(row as object)[0])}`
    })
    .join(', ')
}

const isIn = (handle: SqliteHandle): boolean =>
  handle.isTransaction ?? handle.inTransaction ?? false

const isOpen = (handle: SqliteHandle): boolean => {
  const { isOpen: ofNode, open } = handle as { readonly isOpen?: boolean; readonly open?: boolean }
  return ofNode ?? open ?? false
}

type Opened = Pick<Lane, 'client' | 'hf'> & {
  readonly driver: SqliteDriver<unknown>
  /** Of the driver. */
  readonly handles: readonly SqliteHandle[]
}

export async function openSqliteLane(place: string): Promise<Lane> {
  const way = (await sqliteWays()).get(place)
  if (way === undefined) throw new Error(`there is no place ${place}`)
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-bodies-sqlite-'))
  const path = join(folder, 'bodies.db')
  // By the same client: a second SQLite in a process does not see the locks of the first.
  const looking = openSqlite(way.base, path)
  looking.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; ${tables}`)
  const root = openSqlite(way.base, path)
  const open = (): Opened => {
    const handles: SqliteHandle[] = []
    const driver = way.driver(() => {
      const handle = openSqlite(way.base, path)
      handle.exec('PRAGMA synchronous = NORMAL')
      handles.push(handle)
      return handle
    })
    const client: BodyClient = {
      ...(way as unknown as BodyClient),
      async root(text) {
        root.exec(text)
        return []
      },
      async nested(tx, body) {
        const run = (text: string): Promise<unknown> => (way as unknown as BodyClient).run(tx, text)
        await run('SAVEPOINT by_hand')
        try {
          await body(tx)
        } catch (error) {
          await run('ROLLBACK TO by_hand')
          await run('RELEASE by_hand')
          throw error
        }
        await run('RELEASE by_hand')
      },
      end: async () => await Promise.resolve(driver.close()),
    }
    const hf = createHoldfast(driver, { locks: { watch: false, strict: false } })
    // There is nothing in the vocabulary that SQLite does not offer, but for the locks of rows.
    return { client, hf: hf as unknown as Lane['hf'], driver, handles }
  }
  let current = open()
  await migrate(current.driver)
  const baseline = settingsOf(current.handles[0] as SqliteHandle)
  return {
    get client() {
      return current.client
    },
    get hf() {
      return current.hf
    },
    async prepare(id) {
      const insert = looking.prepare('INSERT INTO doc (id) VALUES (?)')
      looking.exec('BEGIN')
      for (let at = 0; at < 10; at += 1) insert.run(`${id}.${at}`)
      looking.exec('COMMIT')
    },
    connectionOf: async () => await Promise.resolve(0),
    async error(tx, what) {
      const run = (text: string): Promise<unknown> => current.client.run(tx, text)
      switch (what) {
        case 'duplicate':
          await run('INSERT INTO single VALUES (1)')
          return
        case 'fail':
          await run('INSERT OR FAIL INTO single VALUES (7), (1)')
          return
        case 'full':
          // As many as there are.
          await run('PRAGMA max_page_count = 1')
          try {
            await run('INSERT INTO heavy VALUES (zeroblob(4000000))')
          } finally {
            await run('PRAGMA max_page_count = 1073741823')
          }
          return
        case 'unread': {
          const { prepare } = tx as Partial<SqliteHandle>
          if (prepare !== undefined) prepare.call(tx, 'SELECT id FROM doc').iterate().next()
          return
        }
        case 'wait':
          await new Promise(setImmediate)
          return
        case 'vacuum':
          await run('VACUUM')
          return
        default:
          await run('SELECT * FROM nothing')
      }
    },
    kill: async () => await Promise.resolve(),
    async seen([id = '', ...others]) {
      const written = looking.prepare('SELECT id FROM written WHERE body = ?')
      const notes = looking.prepare(
        'SELECT note FROM doc WHERE id BETWEEN ? AND ? AND note IS NOT NULL',
      )
      const rows = [id, ...others].flatMap((each) => written.all(each))
      const updated = notes.all(`${id}.0`, `${id}.9`)
      return new Set([...rows, ...updated].map((row) => String(Object.values(row as object)[0])))
    },
    async isFree() {
      try {
        looking.exec('BEGIN IMMEDIATE')
        looking.exec('ROLLBACK')
        return true
      } catch {
        return false
      }
    },
    isRowFree: async () => await Promise.resolve(false),
    async leftovers() {
      const left = current.handles.filter((each) => isOpen(each) && isIn(each))
      return left.length === 0 ? '' : 'a transaction is open on a connection of the driver'
    },
    async changedSettings() {
      const all = current.handles.filter(isOpen).map(settingsOf)
      const changed = all.find((each) => each !== baseline)
      return changed === undefined ? '' : `${changed}; of a fresh one: ${baseline}`
    },
    async reopen() {
      await current.client.end()
      looking.exec('PRAGMA user_version = 0')
      current = open()
    },
    async [Symbol.asyncDispose]() {
      await current.client.end()
      root.close()
      looking.close()
      await rm(folder, { recursive: true })
    },
  }
}
