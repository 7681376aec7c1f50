import { withClient } from '@holdfast/testkit'
import { Client } from 'pg'
import { expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { createRunner } from '../../../src/run/create-runner.ts'
import type { Flow } from '../../../src/run/options.ts'
import { script } from '../../support/script.ts'

/** Node-postgres ends the process if a connection is lost and nobody listens for errors. */
test('a client without a listener for errors survives crashes', async () => {
  const { directUrl: url } = await testDatabase()
  await withClient(url, (client) => client.query('CREATE TABLE t (n int)'))
  const ended: string[] = []
  const flow: Flow = async (context) => {
    const client = new Client({ connectionString: context.url })
    await client.connect()
    try {
      await client.query({ name: 'add', text: 'INSERT INTO t VALUES ($1)', values: [1] })
      await client.query('BEGIN')
      await client.query({ name: 'add', text: 'INSERT INTO t VALUES ($1)', values: [2] })
      await client.query('COMMIT')
    } finally {
      await client.end()
      ended.push(context.flow)
    }
  }
  await using runner = await createRunner({
    url,
    flows: { alice: flow, bob: flow },
    seed: ({ query }) => query('TRUNCATE t'),
  })
  const flows = ['alice', 'bob']
  for (const order of ['alice!', 'alice alice!', 'alice alice alice alice!', 'alice alice?']) {
    ended.length = 0
    const run = await runner.run(script(flows, order))
    expect(run.outcomes).toMatchObject([{ kind: 'crashed' }, { kind: 'returned' }])
    // Its last words were spoken after the run.
    expect(ended.toSorted()).toEqual(['alice', 'bob'])
  }
})
