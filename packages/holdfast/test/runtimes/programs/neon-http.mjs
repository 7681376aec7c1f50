/** Neon's client for HTTP has no transaction that stays open, and is refused. Nothing is sent. */
import process from 'node:process'
import { neon } from '@neondatabase/serverless'
import { fromPg } from 'holdfast/drivers/pg'
import { fromPostgresJs } from 'holdfast/drivers/postgres-js'

const codeOf = (make) => {
  try {
    make()
  } catch (error) {
    return error.code
  }
  return 'none'
}

const sql = neon('postgres://somebody:secret@localhost/nowhere')
const seen = {
  fromPostgresJs: codeOf(() => fromPostgresJs(sql)),
  fromPg: codeOf(() => fromPg(sql)),
}
process.stdout.write(`${JSON.stringify(seen)}\n`)
