import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startInnodb, startPostgres, withClient } from '@holdfast/testkit'
import { createConnection } from 'mysql2/promise'
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

const servers: Readonly<Record<Engine, () => Promise<Server>>> = {
  async postgres() {
    const server = await startPostgres()
    return {
      newDatabase: async () => {
        const url = await server.createDatabase('demo')
        const run = (sql: string): Promise<Record<string, unknown>[]> =>
          withClient(url, async (client) => (await client.query(sql)).rows)
        return await database('postgres', url, run)
      },
      stop: () => server.stop('immediate'),
    }
  },
  async mysql() {
    const server = await startInnodb('mariadb-10')
    return {
      newDatabase: async () => {
        const url = await server.createDatabase('demo')
        const run = async (sql: string): Promise<Record<string, unknown>[]> => {
          const connection = await createConnection({ uri: url, multipleStatements: true })
          const [rows] = await connection.query(sql)
          await connection.end()
          return rows as Record<string, unknown>[]
        }
        return await database('mysql', url, run)
      },
      stop: () => server.stop(),
    }
  },
  async sqlite() {
    const folder = await mkdtemp(join(tmpdir(), 'three-engines-'))
    let number = 0
    return {
      newDatabase: async () => {
        number += 1
        const file = join(folder, `${number}.db`)
        const run = async (sql: string): Promise<Record<string, unknown>[]> => {
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
  run: (sql: string) => Promise<Record<string, unknown>[]>,
): Promise<Database> {
  await run(await readFile(new URL(`../src/${engine}/schema.sql`, import.meta.url), 'utf8'))
  return {
    url,
    count: async (sql) => Number(Object.values((await run(sql))[0] ?? {})[0]),
    execute: async (sql) => void (await run(sql)),
  }
}
