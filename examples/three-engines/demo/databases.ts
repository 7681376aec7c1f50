import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createConnection } from 'mysql2/promise'
import pg from 'pg'
import { open } from '../src/sqlite/open.ts'

export const engines = ['postgres', 'mysql', 'sqlite'] as const
export type Engine = (typeof engines)[number]

/** A database with the schema of the example, which only this demo uses. */
export interface Database {
  readonly url: string
  /** The first column of the first row. */
  count(sql: string): Promise<number>
  execute(sql: string): Promise<void>
}

export interface Server {
  newDatabase(): Promise<Database>
  stop(): Promise<void>
}

type Rows = Record<string, unknown>[]

/** Where the server of an engine is. SQLite has none. */
export const addresses: Readonly<Record<Engine, string | undefined>> = {
  postgres: process.env['DATABASE_URL'],
  mysql: process.env['MYSQL_URL'],
  sqlite: tmpdir(),
}

/** Creates databases on a server, and drops them at the end. */
function onServer(
  engine: 'postgres' | 'mysql',
  runAt: (url: string, sql: string) => Promise<Rows>,
): Server {
  const address = addresses[engine]
  if (address === undefined) throw new Error(`no address of a server is set for ${engine}`)
  const names: string[] = []
  return {
    async newDatabase() {
      const name = `demo_${randomBytes(5).toString('hex')}`
      await runAt(address, `CREATE DATABASE ${name}`)
      names.push(name)
      const url = new URL(address)
      url.pathname = `/${name}`
      return await database(engine, url.href, (sql) => runAt(url.href, sql))
    },
    async stop() {
      for (const name of names) await runAt(address, `DROP DATABASE ${name}`)
    },
  }
}

const servers: Readonly<Record<Engine, () => Promise<Server>>> = {
  async postgres() {
    return onServer('postgres', async (url, sql) => {
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      try {
        return (await client.query<Record<string, unknown>>(sql)).rows
      } finally {
        await client.end()
      }
    })
  },
  async mysql() {
    return onServer('mysql', async (url, sql) => {
      const connection = await createConnection({ uri: url, multipleStatements: true })
      try {
        const [rows] = await connection.query(sql)
        return rows as Rows
      } finally {
        await connection.end()
      }
    })
  },
  async sqlite() {
    const folder = await mkdtemp(join(tmpdir(), 'three-engines-'))
    let number = 0
    return {
      newDatabase: async () => {
        number += 1
        const file = join(folder, `${number}.db`)
        const run = async (sql: string): Promise<Rows> => {
          const db = open(file)
          db.exec('PRAGMA busy_timeout = 5000')
          try {
            if (/^SELECT/i.test(sql)) return db.prepare(sql).all()
            db.exec(sql)
            return []
          } finally {
            db.close()
          }
        }
        return await database('sqlite', file, run)
      },
      stop: () => rm(folder, { recursive: true }),
    }
  },
}

export async function startServer(engine: Engine): Promise<Server> {
  return await servers[engine]()
}

async function database(
  engine: Engine,
  url: string,
  run: (sql: string) => Promise<Rows>,
): Promise<Database> {
  await run(await readFile(new URL(`../src/${engine}/schema.sql`, import.meta.url), 'utf8'))
  return {
    url,
    count: async (sql) => Number(Object.values((await run(sql))[0] ?? {})[0]),
    execute: async (sql) => void (await run(sql)),
  }
}
