/** Options of `createHoldfast` that hold for all parts: `undefined` in a part says nothing about them. */
import { deferred } from '@holdfast/testkit'
import type { PoolClient } from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Holdfast, type HoldfastOptions, lockKey } from '../../../src/index.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { callerTransaction } from '../../support/pg-fixture.ts'

const fixture = ledgerFixture('CREATE TABLE seat (id int PRIMARY KEY); INSERT INTO seat VALUES (1)')

type Shared = 'wait' | 'tx' | 'resolveFor'
type Hf = Holdfast<PoolClient>
type Given = Readonly<Record<string, unknown>>

/** A part, which of the shared options it has, and a call that reads them. */
interface Part {
  readonly shares: readonly Shared[]
  readonly call: (hf: Hf, given: Given, body?: () => Promise<unknown>) => unknown
}

const nothing = async (): Promise<void> => await Promise.resolve()

const parts: Readonly<Record<string, Part>> = {
  locks: {
    shares: ['wait', 'tx'],
    call: (hf, _, body = nothing) => hf.guard(lockKey('shared', fresh()), body),
  },
  rows: { shares: ['wait', 'tx'], call: (hf, _, body = nothing) => hf.rows.optimistic(body) },
  once: {
    shares: ['wait', 'tx', 'resolveFor'],
    call: (hf, _, body = nothing) => hf.once(fresh(), body),
  },
  ledger: {
    shares: ['resolveFor'],
    call: (hf) =>
      hf
        .quota({ name: 'shared', limit: 1, per: 'lifetime' })
        .consume(fresh(), 1, { operationId: fresh() }),
  },
  leases: {
    shares: ['resolveFor'],
    call: (hf) => hf.leases.tryAcquire(fresh(), { ttl: '1 min' }),
  },
  schedule: {
    shares: ['resolveFor'],
    call: (hf) =>
      hf.schedule({
        name: fresh(),
        every: '1 h',
        guarantee: 'at-least-once',
        handler: nothing,
      }),
  },
  claims: {
    shares: ['resolveFor'],
    call: (hf, given) => hf.claims({ table: 'seat', ...given }),
  },
  work: {
    shares: ['resolveFor'],
    call: (hf, given) => hf.work({ queue: fresh(), ...given }),
  },
}

const declared: ReadonlySet<string> = new Set(['claims', 'work'])

const cases = Object.entries(parts).flatMap(([name, part]) =>
  part.shares.map((option) => [name, option, part] as const),
)

const right = '1 s'
const wrong = 'soon'

/** The wrong value for all, the right one in every part but `name`, which gets `given`. */
async function outcome(name: string, option: Shared, given: Given): Promise<string> {
  const others = cases.filter(
    ([other, each]) => other !== name && each === option && !declared.has(other),
  )
  const options = {
    [option]: wrong,
    ...Object.fromEntries(others.map(([other]) => [other, { [option]: right }])),
    // Tables and queues are declared later.
    ...(declared.has(name) ? {} : { [name]: given }),
  }
  try {
    await parts[name]?.call(fixture.create(options as HoldfastOptions), given)
    return 'taken'
  } catch (error) {
    return String((error as { code?: unknown }).code)
  }
}

/** What is wrong in `tx` is refused before there is a part. */
const perPart = cases.filter(([, option]) => option !== 'tx')

describe.each(perPart)('%s: %s', (name, option) => {
  test('of all holds, unless the part says otherwise', async () => {
    expect(await outcome(name, option, {})).toBe('OPTION_INVALID')
    expect(await outcome(name, option, { [option]: undefined })).toBe('OPTION_INVALID')
    expect(await outcome(name, option, { [option]: right })).toBe('taken')
  })

  test('null is refused', async () => {
    expect(await outcome(name, option, { [option]: null })).toBe('OPTION_INVALID')
  })
})

/** Each part that has the option: with nothing said about it, and with `undefined`. */
const silent = (option: Shared): readonly (readonly [string, string, HoldfastOptions])[] =>
  cases
    .filter(([, each]) => each === option)
    .flatMap(([name]) => [
      [name, 'without it', {}] as const,
      [name, 'with undefined', { [name]: { [option]: undefined } } as HoldfastOptions] as const,
    ])

describe('on the server', () => {
  test.each(silent('wait'))('%s, %s, does not wait if nobody is to', async (name, _, options) => {
    const hf = fixture.create({ wait: 'nowait', ...options })
    const holder = await callerTransaction(fixture)
    const key = lockKey('shared', fresh())
    const calls: Readonly<Record<string, () => Promise<unknown>>> = {
      locks: async () => {
        await fixture.hf.locks.acquire(holder, key)
        await hf.guard(key, nothing)
      },
      rows: async () => {
        await fixture.hf.rows.lock(holder, 'seat', [1])
        await hf.transaction((tx) => hf.rows.lock(tx, 'seat', [1]))
      },
      once: async () => {
        const [name, begun, end] = [fresh(), deferred<void>(), deferred<void>()]
        const first = fixture.hf.once(name, async () => {
          begun.resolve()
          await end.promise
        })
        onTestFinished(async () => {
          end.resolve()
          await first
        })
        await begun.promise
        await hf.once(name, nothing)
      },
    }
    const expected = { locks: 'LOCK_BUSY', rows: 'ROWS_BUSY', once: 'ONCE_TIMEOUT' }[name]
    const failing = calls[name]?.()
    await expect(failing).rejects.toMatchObject({ code: expected })
    // Who has waited knows by whom it was blocked.
    if (name === 'once') await expect(failing).rejects.toMatchObject({ blockers: [{}] })
  })

  /** How often a body runs that always conflicts. */
  async function runsOf(name: string, hf: Hf): Promise<number> {
    let runs = 0
    const conflicting = async (): Promise<never> => {
      runs += 1
      return await Promise.reject(Object.assign(new Error('conflict'), { code: '40001' }))
    }
    const failing = parts[name]?.call(hf, {}, conflicting)
    await expect(failing).rejects.toMatchObject({ code: 'TX_SERIALIZATION' })
    return runs
  }

  test.each(silent('tx'))('%s, %s, runs once if nobody is to retry', async (name, _, options) => {
    expect(await runsOf(name, fixture.create({ tx: { retry: false }, ...options }))).toBe(1)
  })

  test.each(['locks', 'rows', 'once'])('%s retries if it says so itself', async (name) => {
    const own = { [name]: { tx: { retry: { attempts: 2 } } } }
    expect(await runsOf(name, fixture.create({ tx: { retry: false }, ...own }))).toBe(2)
  })

  test('a wrong tx of all is refused at once', () => {
    expect(() => fixture.create({ tx: { deadline: 'soon' as never } })).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID' }),
    )
  })
})
