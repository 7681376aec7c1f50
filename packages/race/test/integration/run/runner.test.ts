import { setTimeout } from 'node:timers/promises'
import { withClient } from '@holdfast/testkit'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import { createRunner, type LiveRunner } from '../../../src/run/create-runner.ts'
import type { Flow, FlowContext, RunnerOptions } from '../../../src/run/options.ts'
import { lines, script } from '../../support/script.ts'

let url: string
beforeAll(async () => {
  const database = await testDatabase()
  url = database.directUrl
  await withClient(url, async (client) => {
    await client.query(`
      CREATE TABLE seats (id serial PRIMARY KEY, event_id int, who text, at timestamptz DEFAULT now());
      CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL);
      CREATE TABLE claims (key text);
    `)
  })
})

const runners: LiveRunner[] = []
afterEach(async () => {
  for (const runner of runners.splice(0)) await runner.close()
})

async function runner(options: Omit<RunnerOptions, 'url' | 'seed'>): Promise<LiveRunner> {
  const made = await createRunner({
    ...options,
    url,
    seed: async ({ query }) => {
      await query('TRUNCATE seats, accounts, claims RESTART IDENTITY')
      await query('INSERT INTO accounts VALUES (1, 100), (2, 100)')
    },
  })
  runners.push(made)
  return made
}

/** The statements one after the other, on one connection. */
function statements(...texts: readonly string[]): Flow {
  return async ({ pool }) => {
    const client = await pool.connect()
    try {
      for (const text of texts) await client.query(text)
    } finally {
      client.release()
    }
  }
}

const reserve: Flow = async ({ pool, flow }) => {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    const { rows } = await client.query('SELECT count(*)::int AS n FROM seats WHERE event_id = 1')
    if (rows[0].n > 0) {
      await client.query('ROLLBACK')
      return 'full'
    }
    await client.query('INSERT INTO seats (event_id, who) VALUES ($1, $2)', [1, flow])
    await client.query('COMMIT')
    return 'ok'
  } finally {
    client.release()
  }
}

const flows = ['alice', 'bob'] as const

describe('order', () => {
  test('is the one that was decided: apart they exclude each other, interleaved they do not', async () => {
    const both = await runner({ flows: { alice: reserve, bob: reserve } })
    const serial = await both.run(script(flows, 'alice alice alice alice bob bob bob'))
    expect(serial.outcomes).toMatchObject([{ value: '"ok"' }, { value: '"full"' }])
    const race = await both.run(script(flows, 'alice alice bob bob alice bob alice bob'))
    expect(race.outcomes).toMatchObject([{ value: '"ok"' }, { value: '"ok"' }])
    expect(race.tables.find(({ name }) => name === 'public.seats')?.rows).toHaveLength(2)
    expect(race.digest).not.toBe(serial.digest)
    // The same order once more gives the same result, keys and clocks aside.
    const again = await both.run(script(flows, 'alice alice bob bob alice bob alice bob'))
    expect(again.digest).toBe(race.digest)
    expect(lines(again, flows)).toEqual(lines(race, flows))
  })

  test('footprints say what was read, added and committed', async () => {
    const both = await runner({ flows: { alice: reserve, bob: reserve } })
    const run = await both.run(script(flows, 'alice alice alice alice'))
    expect(run.steps.slice(0, 4).map(({ footprint }) => footprint)).toMatchObject([
      { opaque: false, touches: [] },
      { touches: [{ object: 'public.seats', mode: 'read' }] },
      { touches: [{ object: 'public.seats', mode: 'append' }] },
      { touches: [], ends: { how: 'commit', writes: ['public.seats'] } },
    ])
  })
})

describe('autocommit statements', () => {
  const claim = `INSERT INTO claims SELECT 'k' WHERE NOT EXISTS (SELECT FROM claims WHERE key = 'k')`
  const once: Flow = async ({ pool }) => (await pool.query(claim)).rowCount

  test('are executed and committed in two steps: both insert, 20 times of 20', async () => {
    const both = await runner({ flows: { alice: once, bob: once } })
    for (let time = 0; time < 20; time += 1) {
      const run = await both.run(script(flows, 'alice bob alice bob'))
      expect(run.outcomes).toMatchObject([{ value: '1' }, { value: '1' }])
      expect(lines(run, flows)).toEqual([
        `alice: ${claim} (execute)`,
        `bob: ${claim} (execute)`,
        `alice: ${claim} (commit)`,
        `bob: ${claim} (commit)`,
      ])
    }
  })

  test('and whole if they are not split, so that only one inserts', async () => {
    const both = await runner({ flows: { alice: once, bob: once }, autocommit: 'atomic' })
    const run = await both.run(script(flows, 'alice bob alice bob'))
    expect(run.outcomes).toMatchObject([{ value: '1' }, { value: '0' }])
    expect(run.steps.map(({ half }) => half)).toEqual(['whole', 'whole'])
  })

  test('with parameters are split as well; reads are not', async () => {
    const flow: Flow = async ({ pool }) => {
      await pool.query('SELECT balance FROM accounts WHERE id = $1', [1])
      await pool.query('UPDATE accounts SET balance = $1 WHERE id = 1', [5])
      await pool.query('UPDATE accounts SET balance = $1 WHERE id = 99', [5])
    }
    const one = await runner({ flows: { alice: flow } })
    for (let time = 0; time < 4; time += 1) {
      const run = await one.run(script(flows, ''))
      expect(run.steps.map(({ half }) => half)).toEqual(['whole', 'execute', 'commit', 'whole'])
      expect(run.steps[1]).toMatchObject({ parameters: ['5'], answer: { tag: 'UPDATE 1' } })
    }
  })

  test('that fail are one step', async () => {
    const flow: Flow = ({ pool }) => pool.query('INSERT INTO accounts VALUES (1, 1)')
    const one = await runner({ flows: { alice: flow } })
    const run = await one.run(script(flows, ''))
    expect(run.outcomes).toMatchObject([{ kind: 'threw', sqlstate: '23505' }])
    expect(run.steps).toMatchObject([
      {
        half: 'whole',
        footprint: { touches: [{ object: 'public.accounts#id=1', mode: 'insert' }] },
      },
    ])
  })
})

describe('waiting', () => {
  const add = statements(
    'BEGIN',
    'UPDATE accounts SET balance = balance + 1 WHERE id = 1',
    'COMMIT',
  )

  test('a statement that waits is seen, and goes on after the commit', async () => {
    const both = await runner({ flows: { alice: add, bob: add } })
    const run = await both.run(script(flows, 'alice alice bob bob alice'))
    expect(lines(run, flows)).toEqual([
      'alice: BEGIN',
      'alice: UPDATE accounts SET balance = balance + 1 WHERE id = 1',
      'bob: BEGIN',
      'bob: UPDATE accounts SET balance = balance + 1 WHERE id = 1 waits for alice',
      'alice: COMMIT',
      'bob: COMMIT',
    ])
    expect(run.steps[3]).toMatchObject({
      resumedAfter: 4,
      waitedFor: [0],
      answer: { tag: 'UPDATE 1' },
    })
    expect(run.decisions[4]).toMatchObject({ blocked: [1], enabled: [{ choice: { flow: 0 } }] })
    expect(run.tables.find(({ name }) => name === 'public.accounts')?.rows).toContainEqual([
      '1',
      '102',
    ])
  })

  test('a held commit is waited for too', async () => {
    const flow: Flow = ({ pool }) => pool.query('UPDATE accounts SET balance = 1 WHERE id = 1')
    const both = await runner({ flows: { alice: flow, bob: flow } })
    const run = await both.run(script(flows, 'alice bob alice bob'))
    expect(run.steps).toMatchObject([
      { flow: 0, half: 'execute' },
      { flow: 1, half: 'execute', waitedFor: [0], resumedAfter: 2 },
      { flow: 0, half: 'commit' },
      { flow: 1, half: 'commit' },
    ])
  })

  test('an advisory lock', async () => {
    const flow = statements('BEGIN', 'SELECT pg_advisory_xact_lock(42)', 'COMMIT')
    const both = await runner({ flows: { alice: flow, bob: flow } })
    const run = await both.run(script(flows, 'alice alice bob bob alice'))
    expect(run.steps[3]).toMatchObject({
      waitedFor: [0],
      resumedAfter: 4,
      footprint: { touches: [{ object: 'advisory #0:42', mode: 'exclusive' }] },
    })
    expect(run.steps[4]).toMatchObject({ footprint: { ends: { locks: ['advisory #0:42'] } } })
  })
})

describe('deadlocks', () => {
  const transfer = (one: number, other: number): Flow =>
    statements(
      'BEGIN',
      `UPDATE accounts SET balance = balance - 1 WHERE id = ${one}`,
      `UPDATE accounts SET balance = balance + 1 WHERE id = ${other}`,
      'COMMIT',
    )

  test.each(flows)('end by the death of whom the schedule chose: %s', async (victim) => {
    const both = await runner({ flows: { alice: transfer(1, 2), bob: transfer(2, 1) } })
    const run = await both.run(script(flows, `alice alice bob bob alice bob ${victim}`))
    expect(run.trouble).toBeUndefined()
    expect(run.deadlocks).toBe(1)
    expect(run.decisions[6]?.enabled.map(({ choice }) => choice)).toEqual([
      { flow: 0, lane: 0, action: 'victim' },
      { flow: 1, lane: 0, action: 'victim' },
    ])
    const died = flows.indexOf(victim)
    expect(run.outcomes[died]).toMatchObject({ kind: 'threw', sqlstate: '40P01' })
    expect(run.outcomes[1 - died]).toMatchObject({ kind: 'returned' })
    expect(run.steps[6]).toMatchObject({ flow: died, choice: { action: 'victim' } })
    const survivor = run.steps.find((step) => step.flow === 1 - died && step.waitedFor.length > 0)
    expect(survivor).toMatchObject({ resumedAfter: 6, answer: { tag: 'UPDATE 1' } })
  })
})

describe('crashes', () => {
  const pay = statements(
    'BEGIN',
    'UPDATE accounts SET balance = balance - 10 WHERE id = 1',
    'COMMIT',
    'UPDATE accounts SET balance = balance + 10 WHERE id = 2',
  )
  const look: Flow = async ({ pool }) =>
    (await pool.query('SELECT balance FROM accounts ORDER BY id FOR UPDATE')).rows

  test.each([
    ['alice alice alice!', [100, 100]],
    ['alice alice alice?', [90, 100]],
    ['alice alice alice alice!', [90, 100]],
    ['alice alice alice alice alice?', [90, 110]],
  ])('at %s leave what was committed', async (order, [one, two]) => {
    const both = await runner({ flows: { alice: pay, bob: look } })
    for (let time = 0; time < 2; time += 1) {
      const run = await both.run(script(flows, order))
      expect(run.trouble).toBeUndefined()
      expect(run.outcomes).toMatchObject([
        { kind: 'crashed' },
        { kind: 'returned', value: JSON.stringify([{ balance: one }, { balance: two }]) },
      ])
    }
  })

  test('release the locks, and recovery runs after the others', async () => {
    const seen: string[] = []
    const both = await runner({
      flows: { alice: pay, bob: look },
      recover: async ({ pool }, flow) => {
        const { rows } = await pool.query('SELECT balance FROM accounts WHERE id = 1')
        seen.push(`${flow} ${rows[0].balance}`)
      },
    })
    const run = await both.run(script(flows, 'alice alice bob alice!'))
    expect(run.steps[2]).toMatchObject({ flow: 1, waitedFor: [0], resumedAfter: 3 })
    expect(seen).toEqual(['alice 100'])
  })
})

describe('pauses', () => {
  test('a flow that pauses before a statement is waited for', async () => {
    const slow: Flow = async (context) => {
      await setTimeout(80)
      return reserve(context)
    }
    const both = await runner({ flows: { alice: slow, bob: reserve } })
    for (let time = 0; time < 3; time += 1) {
      const run = await both.run(script(flows, 'alice alice bob bob alice bob alice bob'))
      expect(run.outcomes).toMatchObject([{ value: '"ok"' }, { value: '"ok"' }])
      expect(run.notes).toEqual([])
    }
  })

  test('one that waits for another flow is not', async () => {
    const gate = Promise.withResolvers<void>()
    const waiting: Flow = async (context) => {
      await gate.promise
      return reserve(context)
    }
    const opening: Flow = async (context) => {
      const outcome = await reserve(context)
      gate.resolve()
      return outcome
    }
    const both = await runner({ flows: { alice: waiting, bob: opening } })
    const run = await both.run(script(flows, 'alice alice bob bob alice bob alice bob'))
    expect(run.outcomes).toMatchObject([{ value: '"full"' }, { value: '"ok"' }])
    expect(run.uncontrolled).toBeUndefined()
    expect(run.notes).toEqual([])
  })

  test('a place that a flow marks is a step', async () => {
    const calling: Flow = async ({ pool, step }) => {
      await pool.query('UPDATE accounts SET balance = balance - 1 WHERE id = 1')
      await step('charge card')
      await pool.query('UPDATE accounts SET balance = balance - 1 WHERE id = 2')
    }
    const both = await runner({ flows: { alice: calling, bob: calling } })
    const run = await both.run(script(flows, 'alice alice alice bob'))
    expect(lines(run, flows).slice(1, 4)).toEqual([
      'alice: UPDATE accounts SET balance = balance - 1 WHERE id = 1 (commit)',
      'alice: -- charge card',
      'bob: UPDATE accounts SET balance = balance - 1 WHERE id = 1 (execute)',
    ])
    expect(run.steps[2]?.footprint.touches).toEqual([
      { object: 'step charge card', mode: 'exclusive' },
    ])
  })
})

describe('trouble', () => {
  test('a flow that waits for ever is named', async () => {
    const hung: Flow = () => new Promise(() => {})
    const both = await runner({ flows: { alice: hung, bob: reserve }, limits: { hangMs: 200 } })
    const run = await both.run(script(flows, ''))
    expect(run.trouble).toMatchObject({ kind: 'hung-flow', flow: 0 })
    expect(run.outcomes).toMatchObject([{ kind: 'unfinished' }, { kind: 'returned' }])
  })

  test('a pool that is too small is named', async () => {
    const nested: Flow = async ({ pool }) => {
      pool.options.max = 1
      const client = await pool.connect()
      await client.query('BEGIN')
      await pool.query('SELECT 1')
    }
    const one = await runner({ flows: { alice: nested }, limits: { hangMs: 200 } })
    expect((await one.run(script(flows, ''))).trouble).toMatchObject({ kind: 'pool-too-small' })
  })

  test('somebody else who holds a lock is named', async () => {
    await withClient(url, async (stranger) => {
      await stranger.query(`SET application_name = 'backup'`)
      const flow: Flow = async ({ pool }) => {
        await stranger.query('BEGIN')
        await stranger.query('UPDATE accounts SET balance = 7 WHERE id = 1')
        await pool.query('UPDATE accounts SET balance = 0 WHERE id = 1')
      }
      const one = await runner({ flows: { alice: flow } })
      const run = await one.run(script(flows, ''))
      expect(run.trouble).toMatchObject({ kind: 'external-blocker', flow: 0 })
      expect(run.trouble?.message).toContain('backup')
      await stranger.query('ROLLBACK')
    })
  })

  test('a transaction left open by a flow that ended is named', async () => {
    const leak: Flow = async ({ pool }) => {
      const client = await pool.connect()
      await client.query('BEGIN')
      await client.query('UPDATE accounts SET balance = 0 WHERE id = 1')
    }
    const both = await runner({ flows: { alice: leak, bob: reserveAfter } })
    const run = await both.run(script(flows, 'alice alice bob'))
    expect(run.trouble).toMatchObject({ kind: 'hung-flow', flow: 1 })
    expect(run.trouble?.message).toContain('alice')
    // The next run starts clean.
    expect((await both.run(script(flows, 'bob bob alice alice'))).trouble).toBeUndefined()
  })
  const reserveAfter = statements('UPDATE accounts SET balance = 1 WHERE id = 1')

  test('a seed that fails, a limit of steps', async () => {
    const one = await createRunner({
      url,
      flows: { alice: reserve },
      seed: ({ query }) => query('SELECT nonsense'),
    })
    expect((await one.run(script(flows, ''))).trouble).toMatchObject({ kind: 'seed-failed' })
    // Two at once would wait for each other: the database is one exploration's.
    await one.close()
    const loop: Flow = async ({ pool }: FlowContext) => {
      for (;;) await pool.query('SELECT 1')
    }
    const endless = await runner({ flows: { alice: loop }, limits: { steps: 20 } })
    expect((await endless.run(script(flows, ''))).trouble).toMatchObject({ kind: 'step-limit' })
  })
})
