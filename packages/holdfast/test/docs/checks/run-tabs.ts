/** `node run-tabs.ts <page> <tabs>`: prints what each tab of that page did, as JSON. See `tabs.ts`. */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import { type Story, stories, type Told } from './tabs.ts'

const [name = '', tabs = '[]'] = process.argv.slice(2)
const story = stories[name] as Story
const client = new pg.Client({ connectionString: process.env['DATABASE_URL'] })
await client.connect()

async function rowsNow(): Promise<string> {
  const tables = story.tables.filter((table) => !table.startsWith('holdfast.'))
  const rows = tables.map(async (table) => {
    const { rows } = await client.query(
      `SELECT pg_catalog.to_jsonb(t) - '{id}'::text[] AS row FROM ${table} AS t ORDER BY 1`,
    )
    return `${table} ${JSON.stringify(rows.map(({ row }) => row))}`
  })
  return (await Promise.all(rows)).join('\n')
}

async function told(folder: string): Promise<Told> {
  const module = await import(pathToFileURL(join(folder, story.file)).href)
  const course: Record<string, Told[string]> = {}
  for (const [title, [run]] of Object.entries(story.courses)) {
    await client.query(`TRUNCATE ${story.tables.join(', ')} RESTART IDENTITY`)
    const answers: unknown[] = []
    await run({
      call: async (...args) => {
        const answer = module[story.calls](...args) as Promise<unknown>
        answers.push(await answer.catch(() => 'throws'))
      },
      query: async (sql) => void (await client.query(sql)),
    })
    course[title] = { answers: answers.map((answer) => answer ?? null), rows: await rowsNow() }
  }
  return course
}

const all: Record<string, Told> = {}
for (const { client: of, folder } of JSON.parse(tabs) as { client: string; folder: string }[]) {
  all[of] = await told(folder)
}
process.stdout.write(JSON.stringify(all), () => process.exit())
