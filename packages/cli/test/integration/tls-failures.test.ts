/** TLS that cannot be had, and what is told then; on stderr nothing but that, also when the client warns. */
import { join } from 'node:path'
import { type PostgresServer, startPostgres, withClient } from '@holdfast/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runProcess } from '../support/run-command.ts'

let withTls: PostgresServer
let without: PostgresServer
beforeAll(async () => {
  ;[withTls, without] = await Promise.all([startPostgres(), startPostgres()])
  await withClient(withTls.url(), async (client) => {
    await client.query(`COPY (SELECT 1) TO PROGRAM
      'openssl req -new -x509 -nodes -subj /CN=elsewhere -keyout server.key -out server.crt'`)
    await client.query('ALTER SYSTEM SET ssl = on')
    await client.query('SELECT pg_reload_conf()')
  })
})
afterAll(() => Promise.all([withTls.stop('immediate'), without.stop('immediate')]))

async function failure(url: string): Promise<Record<string, string>> {
  const { code, out, err } = await runProcess(['locks', '--json'], { DATABASE_URL: url })
  expect([code, out]).toEqual([1, ''])
  expect(err).toMatch(/^\{.*\}\n$/)
  return (JSON.parse(err) as { error: Record<string, string> }).error
}

test('a certificate that nobody trusts, with an sslmode that the client warns of', async () => {
  expect(await failure(`${withTls.url()}?sslmode=require`)).toMatchObject({
    code: 'DEPTH_ZERO_SELF_SIGNED_CERT',
    next: expect.stringContaining('sslrootcert=<file>'),
  })
})

test('a certificate for another host, whose names are not told', async () => {
  const file = encodeURIComponent(join(withTls.dataDir, 'server.crt'))
  const { code, message, next } = await failure(`${withTls.url()}?sslrootcert=${file}`)
  expect(code).toBe('ERR_TLS_CERT_ALTNAME_INVALID')
  expect(message).not.toMatch(/127\.0\.0\.1|localhost|elsewhere/)
  expect(next).toContain('the host of the database URL')
})

test('a server without TLS', async () => {
  const { message, next } = await failure(`${without.url()}?sslmode=verify-full`)
  expect(message).toContain('does not support SSL')
  expect(next).toContain('The server has no TLS')
})

test('what works prints one JSON document, and nothing beside it', async () => {
  const url = `${withTls.url()}?sslmode=no-verify`
  const { code, err } = await runProcess(['locks', '--json'], {
    DATABASE_URL: url,
    NODE_OPTIONS: '--pending-deprecation',
  })
  expect([code, err]).toEqual([0, ''])
})
