import { withClient } from '@holdfast/testkit'
import { expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { explore } from '../../../src/explore.ts'

test('a recovery that throws rejects the exploration, with the name of the flow', async () => {
  const url = (await testDatabase()).directUrl
  await withClient(url, (client) => client.query('CREATE TABLE t (id int PRIMARY KEY, n int)'))
  const exploring = explore({
    url,
    seed: ({ query }) => query('TRUNCATE t; INSERT INTO t VALUES (1, 0)'),
    flows: {
      one: ({ pool }) => pool.query('UPDATE t SET n = n + 1'),
      two: ({ pool }) => pool.query('UPDATE t SET n = n + 1'),
    },
    crash: { recover: ({ pool }) => pool.query('SELECT nowhere') },
    onProgress: () => undefined,
  })
  await expect(exploring).rejects.toThrow(
    /^crash\.recover failed for (one|two): column "nowhere" does not exist$/,
  )
})
