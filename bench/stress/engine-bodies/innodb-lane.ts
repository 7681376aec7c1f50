import { setTimeout as pause } from 'node:timers/promises'
import { waitUntil } from '@holdfast/testkit'
import { type Connection, createConnection } from 'mysql2/promise'
import type { Row } from '../../../packages/holdfast/src/core/driver.ts'
import { namedLock } from '../../../packages/holdfast/src/engines/innodb/locks/lock-name.ts'
import { createHoldfast, migrate } from '../../../packages/holdfast/src/mysql.ts'
import { rowsOf } from '../../engines/innodb-pool.ts'
import {
  innodbClientNames,
  type InnodbBodyClient,
  openInnodbClient,
  poolSize,
} from './innodb-clients.ts'
import type { Lane } from './lane.ts'
import type { LockKey } from '../../../packages/holdfast/src/core/locks/wanted-lock.ts'

/** Each client, with one statement in a text and with several. */
const ways = innodbClientNames.flatMap((client) =>
  [false, true].map((multi) => ({ client, multi })),
)
export const innodbPlaces: readonly string[] = ways.map(({ client, multi }) =>
  multi ? `${client}, several statements` : client,
)

/** Tables and procedures that bodies use. */
const tables: readonly string[] = [
  'CREATE TABLE written (id VARCHAR(80) PRIMARY KEY, body VARCHAR(80) NOT NULL, KEY (body)) ENGINE=InnoDB',
  'CREATE TABLE doc (id VARCHAR(80) PRIMARY KEY, version INT NOT NULL DEFAULT 1, note VARCHAR(80)) ENGINE=InnoDB',
  'CREATE TABLE pair (id INT PRIMARY KEY, v INT NOT NULL) ENGINE=InnoDB',
  'INSERT INTO pair VALUES (1, 0), (2, 0), (3, 0), (4, 0)',
  'CREATE TABLE single (id INT PRIMARY KEY) ENGINE=InnoDB',
  'INSERT INTO single VALUES (1)',
  'CREATE TABLE heavy (id INT PRIMARY KEY) ENGINE=InnoDB',
  'CREATE TABLE made (id INT) ENGINE=InnoDB',
  `CREATE TABLE job (id VARCHAR(80) PRIMARY KEY, batch VARCHAR(80) NOT NULL, status VARCHAR(10) NOT NULL DEFAULT 'pending',
   claim_token CHAR(36), lease_until TIMESTAMP(6) NULL, attempts INT NOT NULL DEFAULT 0,
   KEY (status, batch, id), KEY (status, lease_until)) ENGINE=InnoDB`,
  'CREATE PROCEDURE ends() COMMIT',
  'CREATE PROCEDURE ends_and_begins() BEGIN COMMIT; START TRANSACTION; END',
  'CREATE PROCEDURE rolls_back() ROLLBACK',
  'CREATE PROCEDURE makes_a_table() CREATE TABLE IF NOT EXISTS made (id INT)',
  'CREATE PROCEDURE harmless() SELECT 1',
]

const settingsOf = {
  mariadb: `CONCAT_WS(', ', CONCAT('autocommit ', @@autocommit), CONCAT('level ', @@tx_isolation),
    CONCAT('modes ', @@sql_mode), CONCAT('zone ', @@time_zone), CONCAT('read only ', @@tx_read_only))`,
  mysql: `CONCAT_WS(', ', CONCAT('autocommit ', @@autocommit), CONCAT('level ', @@transaction_isolation),
    CONCAT('modes ', @@sql_mode), CONCAT('zone ', @@time_zone), CONCAT('read only ', @@transaction_read_only))`,
} as const

async function connect(url: string): Promise<Connection> {
  const connection = await createConnection(url)
  await connection.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED')
  return connection
}

export async function openInnodbLane(place: string, url: string): Promise<Lane> {
  const way = ways[innodbPlaces.indexOf(place)]
  if (way === undefined) throw new Error(`there is no place ${place}`)
  // One that looks on, one that is in the way.
  const [looking, other] = [await connect(url), await connect(url)]
  const ask = (text: string, values: readonly unknown[] = []): Promise<readonly Row[]> =>
    rowsOf(looking as never, text, values)
  const [known] = await ask(
    "SELECT VERSION() AS version, COUNT(*) AS made FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'written'",
  )
  const isMariadb = String(known?.['version']).includes('MariaDB')
  const open = async (): Promise<{ client: InnodbBodyClient; hf: Lane['hf'] }> => {
    const client = await openInnodbClient(way.client, url, way.multi)
    const options = { resolveFor: '3 s', locks: { watch: false, strict: false } } as const
    return { client, hf: createHoldfast(client.driver, options) }
  }
  let current = await open()
  if (Number(known?.['made']) === 0) {
    await migrate(current.client.driver)
    for (const text of tables) await looking.query(text)
  }
  const settingsQuery = `SELECT ${settingsOf[isMariadb ? 'mariadb' : 'mysql']} AS settings`
  const onAll = async (text: string): Promise<readonly (readonly Row[])[]> =>
    await Promise.all(Array.from({ length: poolSize }, () => current.client.root(text)))
  const baseline = String((await ask(settingsQuery))[0]?.['settings']).replace(
    'READ-COMMITTED',
    'REPEATABLE-READ',
  )
  const isGone = async (connection: number): Promise<true | undefined> => {
    const rows = await ask('SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = ?', [
      connection,
    ])
    return rows.length === 0 || undefined
  }
  const lane: Lane = {
    get client() {
      return current.client
    },
    get hf() {
      return current.hf
    },
    async prepare(id) {
      const rows = Array.from({ length: 10 }, (_, at) => `('${id}.${at}')`).join(', ')
      await ask(`INSERT INTO doc (id) VALUES ${rows}`)
    },
    async connectionOf(tx) {
      const [row] = await current.client.run(tx, 'SELECT CONNECTION_ID() AS id')
      return Number(row?.['id'])
    },
    async error(tx, what, { connection }) {
      const run = (text: string): Promise<unknown> => current.client.run(tx, text)
      switch (what) {
        case 'deadlock':
          await loses(run, other)
          return
        case 'old snapshot':
          await run('SELECT v FROM pair WHERE id = 3')
          await other.query('UPDATE pair SET v = v + 1 WHERE id = 3')
          await run('UPDATE pair SET v = v + 1 WHERE id = 3')
          return
        case 'lock wait':
        case 'nowait':
          await other.query('BEGIN')
          try {
            await other.query('UPDATE pair SET v = v + 1 WHERE id = 4')
            await run(waits(what, isMariadb))
          } finally {
            await other.query('ROLLBACK')
          }
          return
        case 'duplicate':
          await run('INSERT INTO single VALUES (1)')
          return
        case 'killed statement': {
          const sent = run('SELECT SLEEP(5)')
          sent.catch(() => undefined)
          await waitUntil('it runs', async () => {
            const text =
              "SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = ? AND INFO LIKE '%SLEEP%'"
            return (await ask(text, [connection])).length > 0 || (await over(sent)) || undefined
          })
          await ask(`KILL QUERY ${connection}`).catch(() => undefined)
          await sent
          return
        }
        default:
          await run('SELECT * FROM nothing')
      }
    },
    async kill({ connection }) {
      await ask(`KILL ${connection}`).catch(() => undefined)
      await waitUntil('the connection is gone', () => isGone(connection))
    },
    async seen(ids) {
      const rows = await ask(
        `SELECT id FROM written WHERE body IN (?) UNION ALL
         SELECT note FROM doc WHERE id IN (?) AND note IS NOT NULL`,
        [ids, Array.from({ length: 10 }, (_, at) => `${ids[0]}.${at}`)],
      )
      return new Set(rows.map(({ id }) => String(id)))
    },
    async isFree(key) {
      const { row } = namedLock(key as LockKey)
      const text = 'SELECT 1 FROM holdfast_lock WHERE name = ? FOR UPDATE SKIP LOCKED'
      const rows = await ask(text, [row])
      if (rows.length > 0) return true
      // Not there, or not to be seen yet.
      await looking.query('SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED')
      const all = await ask('SELECT 1 FROM holdfast_lock WHERE name = ?', [row])
      await looking.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED')
      return all.length === 0
    },
    async isRowFree(id) {
      return (await ask('SELECT 1 FROM doc WHERE id = ? FOR UPDATE SKIP LOCKED', [id])).length > 0
    },
    async leftovers() {
      for (let tries = 1; ; tries += 1) {
        try {
          // Refused inside of a transaction, and means nothing outside.
          await onAll('SET TRANSACTION READ WRITE')
          return ''
        } catch (error) {
          if (/1568|transaction is in progress/i.test(textsOf(error)))
            return 'a transaction is open on a connection of the pool'
          // A connection that was killed while it was idle.
          if (tries === 5) throw error
          await pause(5)
        }
      }
    },
    async changedSettings() {
      for (let tries = 1; ; tries += 1) {
        try {
          const all = (await onAll(settingsQuery)).map(([row]) => String(row?.['settings']))
          const changed = all.find((each) => each !== baseline)
          return changed === undefined ? '' : `${changed}; of a fresh one: ${baseline}`
        } catch (error) {
          if (tries === 5) throw error
        }
      }
    },
    async reopen() {
      await Promise.race([current.client.end().catch(() => undefined), pause(500)])
      const others = (
        await ask(
          'SELECT ID AS id FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND ID <> CONNECTION_ID()',
        )
      ).map(({ id }) => Number(id))
      for (const id of others) {
        if (id === other.threadId) continue
        await ask(`KILL ${id}`).catch(() => undefined)
        await waitUntil('the connection is gone', () => isGone(id))
      }
      current = await open()
    },
    async [Symbol.asyncDispose]() {
      await Promise.race([current.client.end().catch(() => undefined), pause(500)])
      looking.destroy()
      other.destroy()
    },
  }
  return lane
}

/** The body dies, because the other one has changed more rows; whoever asks first. */
async function loses(run: (text: string) => Promise<unknown>, other: Connection): Promise<void> {
  const many = Array.from({ length: 40 }, (_, at) => `(${at})`).join(', ')
  await other.query('BEGIN')
  try {
    await other.query(`INSERT INTO heavy VALUES ${many}`)
    await other.query('UPDATE pair SET v = v + 1 WHERE id = 1')
    await run('UPDATE pair SET v = v + 1 WHERE id = 2')
    const theirs = other.query('UPDATE pair SET v = v + 1 WHERE id = 2')
    theirs.catch(() => undefined)
    const ours = run('UPDATE pair SET v = v + 1 WHERE id = 1')
    await Promise.allSettled([theirs, ours])
    await ours
  } finally {
    await other.query('ROLLBACK')
  }
}

/** A wait that the server ends itself: at once, or after its own limit, which MySQL has in whole seconds. */
function waits(what: 'lock wait' | 'nowait', isMariadb: boolean): string {
  if (what === 'nowait') return 'SELECT v FROM pair WHERE id = 4 FOR UPDATE NOWAIT'
  const update = 'UPDATE pair SET v = v + 1 WHERE id = 4'
  return isMariadb ? `SET STATEMENT innodb_lock_wait_timeout = 0 FOR ${update}` : update
}

async function over(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol('pending')
  const first = await Promise.race([
    promise.then(
      () => undefined,
      () => undefined,
    ),
    pause(0, pending),
  ])
  return first !== pending
}

/** What an error and those beneath it say. */
function textsOf(error: unknown): string {
  const texts: string[] = []
  for (let each = error; each instanceof Error; each = each.cause) {
    texts.push(`${String((each as { errno?: unknown }).errno)} ${each.message}`)
  }
  return texts.join('; ')
}
