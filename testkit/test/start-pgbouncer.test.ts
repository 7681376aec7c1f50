import { Client } from 'pg'
import { expect, test } from 'vitest'
import { databaseOf, startPgBouncer, startPostgres, withClient } from '../src/index.ts'

async function pidsOf(url: string): Promise<{ announced: number; actual: number }> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    const { processID: announced } = client as unknown as { processID: number }
    return { announced, actual: rows[0]?.pid ?? 0 }
  } finally {
    await client.end()
  }
}

test('PgBouncer pools transactions, for every database of the server', async () => {
  await using server = await startPostgres()
  await using pooler = await startPgBouncer(server, { poolSize: 1 })
  const database = databaseOf(await server.createDatabase())

  const direct = await pidsOf(server.url(database))
  expect(direct.announced).toBe(direct.actual)
  const pooled = await pidsOf(pooler.url(database))
  expect(pooled.announced).not.toBe(pooled.actual)

  // One server connection serves two clients at once, as no transaction is open between statements.
  await withClient(pooler.url(database), async (alice) => {
    await withClient(pooler.url(database), async (bob) => {
      const text = 'SELECT pg_backend_pid() AS pid'
      const { rows: first } = await alice.query<{ pid: number }>(text)
      const { rows: second } = await bob.query<{ pid: number }>(text)
      expect(first).toEqual(second)
    })
  })

  await withClient(pooler.adminUrl, async (console) => {
    const { rows } = await console.query<{ key: string; value: string }>('SHOW CONFIG')
    expect(rows).toContainEqual(expect.objectContaining({ key: 'pool_mode', value: 'transaction' }))
  })
})

test('PgBouncer starts again on its port, and goes in front of another server', async () => {
  await using server = await startPostgres()
  await using other = await server.standby()
  await using pooler = await startPgBouncer(server, { settings: { server_login_retry: '1' } })
  const asked = async (): Promise<boolean> =>
    await withClient(pooler.url(), async (client) => {
      const { rows } = await client.query<{ standby: boolean }>(
        'SELECT pg_is_in_recovery() AS standby',
      )
      return rows[0]?.standby ?? false
    })
  expect(await asked()).toBe(false)
  const { pid } = pooler
  await pooler.kill()
  await expect(asked()).rejects.toThrow(/ECONNREFUSED/)
  await pooler.startAgain()
  expect(pooler.pid).not.toBe(pid)
  expect(await asked()).toBe(false)
  await pooler.repoint(other)
  expect(await asked()).toBe(true)
})
