/** The shop's suite for `node --test`. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { after, before, test } from 'node:test'
import { fillShop, requests } from '../src/suite.ts'
import { listen, openBank } from './bank.ts'

const bank = await openBank()
process.env['PAYMENTS_URL'] = bank.url
const { app, pool } = await import('../src/app.ts')
const server = createServer(app)
let origin = ''

before(async () => {
  const schema = readFileSync(new URL('../schema.sql', import.meta.url), 'utf8')
  await pool.query(schema + fillShop(20))
  origin = await listen(server)
})
after(async () => {
  bank.close()
  server.close()
  await pool.end()
})

for (const [path, body, status] of requests) {
  void test(`POST ${path} is answered ${status}`, async () => {
    const response = await fetch(origin + path, { method: 'POST', body: JSON.stringify(body) })
    assert.equal(response.status, status)
  })
}
