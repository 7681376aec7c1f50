import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { describe, expect, test } from 'vitest'
import { postgresVersions, startPostgres, waitUntil, withClient } from '../src/index.ts'

async function one(url: string, text: string): Promise<unknown> {
  return await withClient(url, async (client) => {
    const { rows } = await client.query<Record<string, unknown>>(text)
    return Object.values(rows[0] ?? {})[0]
  })
}

describe.each(postgresVersions)('PostgreSQL %i', (version) => {
  test('starts, gives databases of their own, and leaves nothing behind', async () => {
    const server = await startPostgres({ version, settings: { work_mem: '7MB' } })
    expect(await one(server.url(), 'SHOW server_version')).toMatch(new RegExp(`^${version}\\.`))
    expect(await one(server.url(), 'SHOW work_mem')).toBe('7MB')

    const [first, second] = await Promise.all([server.createDatabase(), server.createDatabase()])
    expect(first).not.toBe(second)
    expect(`/${String(await one(first, 'SELECT current_database()'))}`).toBe(
      new URL(first).pathname,
    )

    await server.stop()
    await server.stop()
    expect(existsSync(dirname(server.dataDir))).toBe(false)
    await expect(one(server.url(), 'SELECT 1')).rejects.toThrow(/ECONNREFUSED/)
  })

  test('has a standby that streams, refuses writes, and can be promoted', async () => {
    await using primary = await startPostgres({ version })
    await using standby = await primary.standby()
    expect(await one(standby.url(), 'SELECT pg_is_in_recovery()')).toBe(true)

    await one(primary.url(), 'CREATE TABLE streamed AS SELECT 42 AS answer')
    await waitUntil('the table arrives', async () => {
      const seen = await one(standby.url(), `SELECT to_regclass('streamed')::text`)
      return seen === 'streamed' ? seen : undefined
    })
    expect(await one(standby.url(), 'SELECT answer FROM streamed')).toBe(42)
    await expect(one(standby.url(), 'CREATE TABLE refused ()')).rejects.toMatchObject({
      code: '25006',
    })

    await standby.promote()
    expect(await one(standby.url(), 'SELECT pg_is_in_recovery()')).toBe(false)
    await one(standby.url(), 'CREATE TABLE accepted ()')
  })
})

test('a server that was killed or shut down starts again on its data and port', async () => {
  await using server = await startPostgres({ memoryMb: 300 })
  if (process.getuid?.() !== 0) expect(server.inMemory).toBe(false)
  await one(server.url(), 'CREATE TABLE kept AS SELECT 42 AS answer')
  const { pid, port } = server
  await server.kill()
  await expect(one(server.url(), 'SELECT 1')).rejects.toThrow(/ECONNREFUSED/)
  await server.startAgain()
  expect(server.pid).not.toBe(pid)
  expect(server.port).toBe(port)
  // The postmaster alone: its children have to notice, and one of them cannot.
  await withClient(server.url(), async (client) => {
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
    process.kill(rows[0]?.pid ?? 0, 'SIGSTOP')
    process.kill(server.pid, 'SIGKILL')
    await waitUntil('the postmaster has ended', () =>
      existsSync(`/proc/${server.pid}/exe`) ? undefined : true,
    )
    await server.startAgain()
  })
  for (const mode of ['fast', 'immediate'] as const) {
    await server.shutDown(mode)
    await server.startAgain()
  }
  expect(await one(server.url(), 'SELECT answer FROM kept')).toBe(42)
})

test('a server that cannot start says why', async () => {
  await expect(startPostgres({ settings: { max_connections: 'many' } })).rejects.toThrow(
    /invalid value for parameter "max_connections"/,
  )
})
