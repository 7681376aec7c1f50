import { withClient } from '@holdfast/testkit'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { createRunner, type LiveRunner } from '../../../src/run/create-runner.ts'
import type { Flow, FlowContext } from '../../../src/run/options.ts'
import { type AnyClient, clients } from '../../support/clients.ts'
import { script } from '../../support/script.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) =>
    client.query(`
      CREATE TABLE seats (id serial PRIMARY KEY, event_id int NOT NULL, who text);
      CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL);
    `),
  )
})

const open = new Map<string, AnyClient>()
let runner: LiveRunner | undefined
afterEach(async () => {
  for (const client of open.values()) await client.end()
  open.clear()
  await runner?.close()
  runner = undefined
})

const flows = ['alice', 'bob']

describe.each(Object.keys(clients))('%s', (name) => {
  /** An application keeps its client: it is opened once per address. */
  async function clientOf(context: FlowContext): Promise<AnyClient> {
    const known = open.get(context.flow)
    const client = known ?? (await clients[name]?.(context))
    if (!client) throw new Error(`no client ${name}`)
    open.set(context.flow, client)
    return client
  }

  async function start(
    flow: (client: AnyClient, who: string) => Promise<unknown>,
  ): Promise<LiveRunner> {
    const body: Flow = async (context) => flow(await clientOf(context), context.flow)
    runner = await createRunner({
      url,
      flows: { alice: body, bob: body },
      seed: async ({ query }) => {
        await query('TRUNCATE seats, accounts RESTART IDENTITY')
        await query('INSERT INTO accounts VALUES (1, 100), (2, 100)')
      },
    })
    return runner
  }

  test('check-then-insert: interleaved both insert, one after the other only one', async () => {
    const both = await start((client, who) =>
      client.transaction(async (ask) => {
        const [row] = await ask('SELECT count(*)::int AS n FROM seats WHERE event_id = $1', 1)
        if (Number(row?.['n']) > 0) return 'full'
        await ask('INSERT INTO seats (event_id, who) VALUES ($1, $2)', 1, who)
        return 'ok'
      }),
    )
    for (let time = 0; time < 3; time += 1) {
      const race = await both.run(script(flows, 'alice alice bob bob alice bob alice bob'))
      expect(race.trouble).toBeUndefined()
      expect(race.outcomes).toMatchObject([{ value: '"ok"' }, { value: '"ok"' }])
      expect(race.steps).toHaveLength(8)
      expect(race.steps[2]?.answer).toMatchObject({ tag: expect.any(String) })
      const reads = race.steps.filter(({ statements }) => statements[0]?.startsWith('SELECT'))
      expect(reads.map(({ answer }) => answer.rows)).toEqual([[['0']], [['0']]])
      expect(reads[0]?.parameters).toEqual(['1'])
      const serial = await both.run(script(flows, 'alice alice alice alice'))
      expect(serial.outcomes).toMatchObject([{ value: '"ok"' }, { value: '"full"' }])
    }
  })

  test('a statement that waits, and its way on', async () => {
    const both = await start((client) =>
      client.transaction((ask) =>
        ask('UPDATE accounts SET balance = balance + $1 WHERE id = 1', 1),
      ),
    )
    const run = await both.run(script(flows, 'alice alice bob bob alice'))
    expect(run.steps[3]).toMatchObject({ flow: 1, waitedFor: [0], resumedAfter: 4 })
    expect(run.tables.find(({ name: table }) => table === 'public.accounts')?.rows).toContainEqual([
      '1',
      '102',
    ])
  })

  test('an autocommit statement is split', async () => {
    const both = await start((client, who) =>
      client.ask(
        `INSERT INTO seats (event_id, who) SELECT 1, $1
         WHERE NOT EXISTS (SELECT FROM seats WHERE event_id = 1)`,
        who,
      ),
    )
    const run = await both.run(script(flows, 'alice bob alice bob'))
    expect(run.steps.map(({ half }) => half)).toEqual(['execute', 'execute', 'commit', 'commit'])
    expect(run.tables.find(({ name: table }) => table === 'public.seats')?.rows).toHaveLength(2)
  })

  test('after a crash the client goes on in the next run as if nothing had happened', async () => {
    const both = await start((client, who) =>
      client.transaction(async (ask) => {
        await ask('INSERT INTO seats (event_id, who) VALUES ($1, $2)', 1, who)
        return 'ok'
      }),
    )
    for (const order of ['alice alice alice!', 'alice alice! bob', 'alice alice alice?']) {
      const crashed = await both.run(script(flows, order))
      expect(crashed.trouble).toBeUndefined()
      expect(crashed.outcomes).toMatchObject([{ kind: 'crashed' }, { value: '"ok"' }])
      const seats = crashed.tables.find(({ name: table }) => table === 'public.seats')?.rows
      expect(seats).toHaveLength(order.endsWith('?') ? 2 : 1)
      const next = await both.run(script(flows, 'alice bob alice bob'))
      expect(next.outcomes).toMatchObject([{ value: '"ok"' }, { value: '"ok"' }])
      expect(next.notes).toEqual([])
    }
  })
})
