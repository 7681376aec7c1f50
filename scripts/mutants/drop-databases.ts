import { withClient } from '@holdfast/testkit'
import { beforeAll, inject } from 'vitest'

/** Thousands of runs on one server would fill the disk: each run drops the databases of those before it. */
beforeAll(async () => {
  await withClient(inject('postgresUrl'), async (client) => {
    const { rows } = await client.query<{ datname: string }>(
      `SELECT datname FROM pg_database WHERE datname LIKE 'test\\_%'`,
    )
    for (const { datname } of rows) {
      await client.query(`DROP DATABASE ${client.escapeIdentifier(datname)} WITH (FORCE)`)
    }
  })
})
