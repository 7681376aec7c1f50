import { createDatabase } from '@holdfast/testkit'
import { ask } from './ask.ts'

type Prepare = (adminUrl: string) => Promise<void>

/** Databases of episodes: each is a copy of one that was prepared once. */
export interface Databases {
  make(prepare: Prepare): Promise<string>
  drop(database: string): Promise<void>
}

const copyMs = 30_000

export function openDatabases(serverUrl: () => string): Databases {
  const templates = new Map<Prepare, Promise<string>>()
  let number = 0

  const prepared = async (prepare: Prepare): Promise<string> => {
    const url = await createDatabase(serverUrl(), 'prepared')
    await prepare(url)
    return decodeURIComponent(new URL(url).pathname.slice(1))
  }
  return {
    async make(prepare) {
      let template = templates.get(prepare)
      if (template === undefined) {
        template = prepared(prepare)
        templates.set(prepare, template)
      }
      const source = await template
      number += 1
      const database = `episode_${number}`
      await ask(
        serverUrl(),
        async (client) => {
          await client.query(`DROP DATABASE IF EXISTS ${database} WITH (FORCE)`)
          await client.query(`CREATE DATABASE ${database} TEMPLATE ${source}`)
        },
        copyMs,
      )
      return database
    },
    async drop(database) {
      const work = async (text: string): Promise<void> => {
        await ask(serverUrl(), async (client) => await client.query(text), copyMs)
      }
      await work(`DROP DATABASE IF EXISTS ${database} WITH (FORCE)`)
    },
  }
}
