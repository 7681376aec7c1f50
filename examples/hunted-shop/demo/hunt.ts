/** Hunts in the shop: `DATABASE_URL=postgres://localhost/test node demo/hunt.ts`, in an empty database for tests. */
import { readFileSync } from 'node:fs'
import { formatHunt, hunt, instrument } from '@holdfast/race/hunt'
import pg from 'pg'
import { createShop } from '../src/shop.ts'
import { fillShop, runSuite } from '../src/suite.ts'

// Before the shop opens a connection.
instrument(pg)

const url = process.env['DATABASE_URL']
const pool = new pg.Pool({ connectionString: url })
const schema = readFileSync(new URL('../schema.sql', import.meta.url), 'utf8')
await pool.query(schema + fillShop(20))
const report = await hunt({
  url,
  app: createShop({ pool }),
  suite: ({ fetch }) => runSuite(fetch),
  onProgress: ({ phase, done, of, proven }) =>
    process.stderr.write(`${phase} ${done} of ${of}, ${proven} proven\n`),
})
console.log(formatHunt(report))
await pool.end()
