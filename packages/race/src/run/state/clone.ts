/**
 * `state: 'clone'`: every run has a database of its own, made from a template. The template is a copy of the user's
 * database that is taken once, so that others may use the database while it is explored.
 */
import { randomBytes } from 'node:crypto'
import { Client, type DatabaseError, escapeIdentifier } from 'pg'
import type { GatedConnection } from '../../gate/gated-connection.ts'
import { sqlstateOf } from '../answer/error-layers.ts'
import { leadShared, sharedWith, uncontrolled } from '../connection/shared-connections.ts'
import { withoutSessions } from '../connection/sessions.ts'

/** The database that runs use in place of the user's. */
export interface Clone {
  readonly url: string
  /** Connections of clients that the code under test keeps for itself, and that are led to it. */
  borrowed(): GatedConnection[]
  /** Makes it anew if it has been used. Nobody may be connected to it. */
  renew(): Promise<void>
  /** Drops it, and leads clients back to the user's database. */
  close(): Promise<void>
}

/** From where databases are made: one cannot drop the database that one is connected to. */
const office = 'postgres'
/** The mark of the session that a template and a clone belong to; without the session they are leftovers. */
const named = /^holdfast_race_([0-9a-f]{12})_(?:template|run)$/

export async function openClone(url: string): Promise<Clone> {
  const { database: source = '', port } = new Client({ connectionString: url })
  const mark = randomBytes(6).toString('hex')
  const template = `holdfast_race_${mark}_template`
  const name = `holdfast_race_${mark}_run`
  const key = `${port}/${source}`
  const client = await connect(url, mark)
  let fresh = false

  async function make(): Promise<void> {
    await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
    await client.query(`CREATE DATABASE ${name} TEMPLATE ${template}`)
    await dress(client, source, name)
    fresh = true
  }

  async function close(): Promise<void> {
    leadShared(key, undefined)
    try {
      await withoutSessions(sharedWith(key), async () => {
        await drop(client, name)
        await drop(client, template)
      })
    } finally {
      await client.end()
    }
  }

  try {
    await sweep(client)
    await withoutSessions(sharedWith(key), async () => {
      await client
        .query(
          `CREATE DATABASE ${template} TEMPLATE ${escapeIdentifier(source)} ALLOW_CONNECTIONS false`,
        )
        .catch(async (error: unknown) => {
          throw await refusal(client, source, error)
        })
      await make()
      leadShared(key, name)
    })
  } catch (error) {
    await close()
    throw error
  }

  return {
    url: withDatabase(url, name),
    borrowed: () => sharedWith(key),
    async renew() {
      if (!fresh) await make()
      fresh = false
    },
    close,
  }
}

async function connect(url: string, mark: string): Promise<Client> {
  const client = new Client({
    connectionString: withDatabase(url, office),
    application_name: `holdfast-race ${mark}`,
  })
  uncontrolled.add(client)
  client.on('error', () => undefined)
  try {
    await client.connect()
    // Copying a database takes as long as it takes.
    await client.query('SET statement_timeout = 0')
  } catch (error) {
    throw new Error(
      `state: 'clone' makes databases from a connection to the database ${office}, and could not connect to it: ${said(error)}`,
      { cause: error },
    )
  }
  return client
}

function withDatabase(url: string, database: string): string {
  const other = new URL(url)
  other.pathname = `/${encodeURIComponent(database)}`
  for (const name of ['database', 'dbname']) other.searchParams.delete(name)
  return other.href
}

function said(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

async function refusal(client: Client, source: string, error: unknown): Promise<Error> {
  const sqlstate = sqlstateOf(error)
  if (sqlstate === '42501')
    return new Error(
      `state: 'clone' needs a role with CREATEDB that owns the database ${source}, or a superuser: ${said(error)}`,
      { cause: error },
    )
  if (sqlstate !== '55006') return error instanceof Error ? error : new Error(String(error))
  const { rows } = await client.query<{ who: string }>(
    `SELECT format('%s (pid %s)', coalesce(nullif(application_name, ''), backend_type), pid) AS who
     FROM pg_catalog.pg_stat_activity WHERE datname = $1 ORDER BY pid LIMIT 5`,
    [source],
  )
  const who = rows.map((row) => row.who).join(', ')
  const detail = (error as DatabaseError).detail ?? ''
  return new Error(
    `state: 'clone' cannot copy ${source} while others are connected to it: ${who === '' ? detail : who}. Close these sessions before explore(), or put them under its control with instrument()`,
    { cause: error },
  )
}

/** Drops what a process left behind that died while it explored. */
async function sweep(client: Client): Promise<void> {
  // First the databases: each is made by a session that is there already, and there as long as the database.
  const databases = await client.query<{ name: string }>(
    `SELECT datname AS name FROM pg_catalog.pg_database WHERE datname ~ '^holdfast_race_'`,
  )
  const sessions = await client.query<{ name: string }>(
    'SELECT application_name AS name FROM pg_catalog.pg_stat_activity',
  )
  const alive = new Set(sessions.rows.map(({ name }) => name))
  for (const { name } of databases.rows) {
    const [, mark] = named.exec(name) ?? []
    if (mark === undefined || alive.has(`holdfast-race ${mark}`)) continue
    // It may be somebody else's, who drops it with the next exploration.
    await drop(client, name).catch(() => undefined)
  }
}

async function drop(client: Client, name: string): Promise<void> {
  await client.query(`DROP DATABASE IF EXISTS ${escapeIdentifier(name)} WITH (FORCE)`)
}

const settingsText = `
  SELECT coalesce(r.rolname, '') AS role, split_part(one, '=', 1) AS name, substr(one, strpos(one, '=') + 1) AS value
  FROM pg_catalog.pg_db_role_setting s JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase AND d.datname = $1
  LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.setrole, unnest(s.setconfig) AS one`

const rightsText = `
  SELECT coalesce(r.rolname, '') AS role, a.privilege_type AS right
  FROM pg_catalog.pg_database d, pg_catalog.aclexplode(d.datacl) a LEFT JOIN pg_catalog.pg_roles r ON r.oid = a.grantee
  WHERE d.datname = $1`

/** Gives a copy what belongs to the database and is not in it: ALTER DATABASE … SET, GRANT … ON DATABASE. */
async function dress(client: Client, source: string, copy: string): Promise<void> {
  const settings = await client.query<{ role: string; name: string; value: string }>(settingsText, [
    source,
  ])
  for (const { role, name, value } of settings.rows) {
    const whose =
      role === '' ? `DATABASE ${copy}` : `ROLE ${escapeIdentifier(role)} IN DATABASE ${copy}`
    const setting = name.split('.').map(escapeIdentifier).join('.')
    // The stored text is what a session would have; only so lists keep their form.
    await client.query('BEGIN')
    try {
      await client.query('SELECT set_config($1, $2, true)', [name, value])
      await client.query(`ALTER ${whose} SET ${setting} FROM CURRENT`)
      await client.query('COMMIT')
    } catch (error) {
      await client.query('ROLLBACK')
      throw new Error(
        `state: 'clone' cannot give the clone the setting ${name} of the database ${source}: ${said(error)}. Use a role that may, or write a seed instead`,
        { cause: error },
      )
    }
  }
  const rights = await client.query<{ role: string; right: string }>(rightsText, [source])
  if (rights.rows.length === 0) return
  await client.query(`REVOKE ALL ON DATABASE ${copy} FROM PUBLIC`)
  for (const { role, right } of rights.rows) {
    const whom = role === '' ? 'PUBLIC' : escapeIdentifier(role)
    await client.query(`GRANT ${right} ON DATABASE ${copy} TO ${whom}`)
  }
}
