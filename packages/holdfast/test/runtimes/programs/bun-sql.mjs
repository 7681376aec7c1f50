/** Bun only: its SQL client looks like postgres.js and is refused. */
import process from 'node:process'
import { sql as tag } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/bun-sql'
import { fromDrizzle } from 'holdfast/drivers/drizzle'
import { fromPg } from 'holdfast/drivers/pg'
import { fromPostgresJs } from 'holdfast/drivers/postgres-js'

const messages = []
const codeOf = (make) => {
  try {
    make()
  } catch (error) {
    messages.push(error.message)
    return error.code
  }
  return 'none'
}

const client = new globalThis.Bun.SQL(process.env.DATABASE_URL)
const seen = {
  fromPostgresJs: codeOf(() => fromPostgresJs(client)),
  fromPg: codeOf(() => fromPg(client)),
  fromDrizzle: codeOf(() => fromDrizzle(drizzle({ client }), tag)),
  names: messages.every((message) => message.includes('use postgres.js or pg')),
}
process.stdout.write(`${JSON.stringify(seen)}\n`)
