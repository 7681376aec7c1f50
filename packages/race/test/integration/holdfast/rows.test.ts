import { describe, expect, test } from 'vitest'
import type { Flow, InvariantContext } from '../../../src/run/options.ts'
import { appStage, ownHoldfast } from './app-stage.ts'
import { patienceMs } from './expectations.ts'

const explored = appStage(
  `CREATE TABLE purse (id int PRIMARY KEY, coins int NOT NULL, version int NOT NULL DEFAULT 1);
   CREATE TABLE job (id int PRIMARY KEY, taken_by text);
   CREATE TABLE booking (id serial PRIMARY KEY, who text NOT NULL)`,
  `TRUNCATE purse, job, booking RESTART IDENTITY;
   INSERT INTO purse VALUES (1, 10), (2, 10), (3, 10);
   INSERT INTO job VALUES (1), (2), (3)`,
)

interface Purse {
  readonly id: number
  readonly coins: number
  readonly version: number
}

describe('lock', () => {
  type How = 'all' | 'one by one' | 'not at all'

  const moving =
    (from: number, to: number, how: How): Flow =>
    (cx) => {
      const hf = ownHoldfast(cx)
      return hf.transaction(async (tx) => {
        const purses: Purse[] = []
        if (how === 'not at all') {
          const text = 'SELECT * FROM purse WHERE id = ANY ($1)'
          purses.push(...(await tx.query<Purse>(text, [[from, to]])).rows)
        } else {
          const groups = how === 'all' ? [[from, to]] : [[from], [to]]
          for (const ids of groups) {
            purses.push(...(await hf.rows.lock<Purse>(tx, 'purse', ids)).rows)
          }
        }
        const coins = (id: number): number => purses.find((purse) => purse.id === id)?.coins ?? 0
        await tx.query(
          'UPDATE purse SET coins = CASE id WHEN $1 THEN $2::int ELSE $4::int END WHERE id IN ($1, $3)',
          [from, coins(from) - 6, to, coins(to) + 6],
        )
        return [coins(from), coins(to)]
      })
    }

  test('in opposite orders: no deadlock', async () => {
    const report = await explored({ a: moving(1, 2, 'all'), b: moving(2, 1, 'all') })
    expect(report).toBeExhausted({ classes: 6, schedules: 10 })
    expect(report.coverage.deadlocks).toBe(0)
  })

  test(
    'in a circle: no deadlock',
    async () => {
      const report = await explored({
        a: moving(1, 2, 'all'),
        b: moving(2, 3, 'all'),
        c: moving(3, 1, 'all'),
      })
      expect(report).toBeExhausted({ classes: 80, schedules: 90 })
      expect(report.coverage.deadlocks).toBe(0)
    },
    patienceMs,
  )

  test('control: one by one in opposite orders', async () => {
    const flows = { a: moving(1, 2, 'one by one'), b: moving(2, 1, 'one by one') }
    expect(await explored(flows, { deadlocks: 'fail' })).toBeCaught(/circle/)
  })

  test('control: without a lock', async () => {
    const flows = { a: moving(1, 2, 'not at all'), b: moving(1, 3, 'not at all') }
    expect(await explored(flows)).toBeCaught(/no serial order/)
  })
})

describe('lock, skipping what others have', () => {
  const claiming =
    (locks: boolean): Flow =>
    (cx) => {
      interface Job {
        readonly id: number
        readonly taken_by: string | null
      }
      const hf = ownHoldfast(cx)
      return hf.transaction(async (tx) => {
        const { rows } = locks
          ? await hf.rows.lock<Job>(tx, 'job', [1, 2, 3], { wait: 'skip' })
          : await tx.query<Job>('SELECT * FROM job ORDER BY id')
        const job = rows.find(({ taken_by: by }) => by === null)
        if (job === undefined) return 'nothing to do'
        await tx.query('UPDATE job SET taken_by = $2 WHERE id = $1', [job.id, cx.flow])
        return 'done'
      })
    }

  // Who takes which job, or none because others look at all of them, is left to chance by design.
  const options = {
    oracle: false,
    async invariant({ query, outcomes }: InvariantContext): Promise<void> {
      const taken = await query('SELECT FROM job WHERE taken_by IS NOT NULL')
      const done = Object.values(outcomes).filter(
        (outcome) => outcome.kind === 'returned' && outcome.value === '"done"',
      )
      if (done.length !== taken.length) throw new Error(`${done.length} did ${taken.length} jobs`)
    },
  } as const

  test('two', async () => {
    const report = await explored({ a: claiming(true), b: claiming(true) }, options)
    expect(report).toBeExhausted({ classes: 8, schedules: 11 })
  })

  test('three', async () => {
    const flows = { a: claiming(true), b: claiming(true), c: claiming(true) }
    const report = await explored(flows, { ...options, symmetric: true })
    expect(report).toBeExhausted({ classes: 22, schedules: 25 })
  })

  test('control: without a lock', async () => {
    expect(await explored({ a: claiming(false), b: claiming(false) }, options)).toBeCaught()
  })
})

// Whoever is refused asks for at most 100 ms who is in the way: a clock that no schedule controls.
test('lock, nowait: who comes second is told so, and leaves nothing behind', async () => {
  const taking: Flow = (cx) => {
    const hf = ownHoldfast(cx)
    return hf.transaction(async (tx) => {
      const { rows } = await hf.rows.lock<Purse>(tx, 'purse', [1], { wait: 'nowait' })
      await tx.query('UPDATE purse SET coins = $1 WHERE id = 1', [(rows[0]?.coins ?? 0) - 1])
    })
  }
  const { failure, notes, trouble } = await explored({ a: taking, b: taking })
  expect({ failure, trouble }).toEqual({ failure: undefined, trouble: undefined })
  expect(notes).toContainEqual(expect.objectContaining({ kind: 'refused' }))
})

describe('lockTable', () => {
  const booking =
    (locks: boolean): Flow =>
    (cx) => {
      const hf = ownHoldfast(cx)
      return hf.transaction(async (tx) => {
        if (locks) await hf.rows.lockTable(tx, 'booking', 'share row exclusive')
        const { rowCount } = await tx.query('SELECT FROM booking')
        if (rowCount !== 0) return 'taken'
        await tx.query('INSERT INTO booking (who) VALUES ($1)', [cx.flow])
        return 'booked'
      })
    }

  test('two', async () => {
    const report = await explored({ a: booking(true), b: booking(true) })
    expect(report).toBeExhausted({ classes: 8, schedules: 11 })
  })

  test('three', async () => {
    const flows = { a: booking(true), b: booking(true), c: booking(true) }
    const report = await explored(flows, { symmetric: true })
    expect(report).toBeExhausted({ classes: 18, schedules: 25 })
  })

  test('control: somebody who does not lock it', async () => {
    expect(await explored({ a: booking(true), b: booking(false) })).toBeCaught(/no serial order/)
  })
})

describe('versions', () => {
  const optimistic =
    (versioned: boolean): Flow =>
    async (cx) => {
      const hf = ownHoldfast(cx)
      await hf.rows.optimistic(async (tx) => {
        const { rows } = await tx.query<Purse>('SELECT * FROM purse WHERE id = 1')
        const { version = 0, coins = 0 } = rows[0] ?? {}
        const left = coins - 3
        if (versioned) {
          await hf.rows.updateVersioned(tx, 'purse', 1, { version, set: { coins: left } })
        } else await tx.query('UPDATE purse SET coins = $1 WHERE id = 1', [left])
      })
    }

  const checked: Flow = (cx) =>
    ownHoldfast(cx).rows.withVersionCheck<Purse, number, void>('purse', 1, {
      attempts: 5,
      work: async (purse) => purse.coins - 3,
      write: async (tx, _, left) => {
        await tx.query('UPDATE purse SET coins = $1 WHERE id = 1', [left])
      },
    })

  test('optimistic twice: who was too late tries again', async () => {
    const report = await explored({ a: optimistic(true), b: optimistic(true) })
    expect(report).toBeExhausted({ classes: 6, schedules: 10 })
  })

  test('optimistic, and work between read and write', async () => {
    const report = await explored({ a: optimistic(true), b: checked })
    expect(report).toBeExhausted({ classes: 8, schedules: 11 })
  })

  test('work between read and write, twice', async () => {
    const report = await explored({ a: checked, b: checked })
    expect(report).toBeExhausted({ classes: 10, schedules: 12 })
  })

  test('control: the version is not asked for', async () => {
    expect(await explored({ a: optimistic(false), b: optimistic(false) })).toBeCaught(
      /no serial order/,
    )
  })
})
