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

test('a server that cannot start says why', async () => {
  await expect(startPostgres({ settings: { max_connections: 'many' } })).rejects.toThrow(
    /invalid value for parameter "max_connections"/,
  )
})
