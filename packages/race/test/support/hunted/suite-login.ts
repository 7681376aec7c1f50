/** Logs in for each request, as many suites do for each test, and forgets who was logged in before. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { app, pool, tables } from './login-app.ts'

const { TOKEN_IN } = process.env

await pool.query(tables)
const server = createServer((request, response) => void app(request, response))
await once(server.listen(0, '127.0.0.1'), 'listening')
const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const requests = [
  ['/spend', 'ses-ann-815-a'],
  ['/earn', 'ses-ann-815-b'],
] as const
for (const [path, token] of requests) {
  await pool.query('TRUNCATE sessions')
  await pool.query('INSERT INTO sessions VALUES ($1, 1)', [token])
  const body = { email: 'ann.miller@corp.com', points: 30 }
  const isInBody = TOKEN_IN === 'body'
  const { status } = await fetch(origin + path, {
    method: 'POST',
    headers: isInBody ? {} : { authorization: `Bearer ${token}` },
    body: JSON.stringify(isInBody ? { ...body, token } : body),
  })
  if (status !== 200) throw new Error(`${path}: ${status}`)
}
server.close()
await pool.end()
