/**
 * Hunts in the shop: `DATABASE_URL=postgres://localhost/test node demo/hunt.ts`, in an empty database for tests.
 * `--seconds n`: ends after so long, with what is proven by then.
 */
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { formatHunt, hunt, instrument } from '@holdfast/race/hunt'
import pg from 'pg'
import { createShop } from '../src/shop.ts'
import { fillShop, runSuite } from '../src/suite.ts'

// Before the shop opens a connection.
instrument(pg)

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '180' } } })
const url = process.env['DATABASE_URL']
const pool = new pg.Pool({ connectionString: url })
const schema = readFileSync(new URL('../schema.sql', import.meta.url), 'utf8')
await pool.query(schema + fillShop(20))
const report = await hunt({
  url,
  app: createShop({ pool }),
  suite: ({ fetch }) => runSuite(fetch),
  budget: { ms: Number(values.seconds) * 1_000 },
  onProgress: ({ phase, done, of, proven }) =>
    process.stderr.write(`${phase} ${done} of ${of}, ${proven} proven\n`),
})
console.log(formatHunt(report))
await pool.end()
