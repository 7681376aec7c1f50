import { AsyncLocalStorage } from 'node:async_hooks'
import { beforeAll, expect, test } from 'vitest'
import { lockKey } from '../../../../src/core/locks/lock-key.ts'
import type { InnodbDriver } from '../../../../src/engines/innodb/driver.ts'
import { createHoldfast, migrate } from '../../../../src/mysql.ts'
import { wire } from '../../../../src/engines/innodb/tx/transaction.ts'
import { bodiesOf, bodyTables, lieIn, runBody, type Told, type Written } from '../support/bodies.ts'
import { eachInnodb } from '../support/each-innodb.ts'
import type { Handle } from '../support/innodb-clients.ts'

const count = process.env['HOLDFAST_ENGINES'] === 'all' ? 150 : 60
let runs = 0

/** Which of the protections are there. */
interface Protections {
  /** What bodies send is read and held back. */
  readonly leash: boolean
  readonly tripwire: boolean
}

/**
 * Whatever a body does, its caller is never told "committed" when something else is there, nor "nothing is saved" when
 * something is.
 */
eachInnodb((place) => {
  beforeAll(async () => {
    await using session = await place.session()
    await session.all(...bodyTables)
  })

  /** A handle without the leash, by the one with it. */
  const unleashed = new AsyncLocalStorage<{ handle: Handle | undefined }>()

  const liesOf = async ({ leash, tripwire }: Protections, seed: number): Promise<string[]> => {
    await using pool = place.pool(4)
    await using session = await place.session()
    await using other = await place.session()
    await migrate(pool.driver)
    const weaken = (handle: Handle): Handle =>
      new Proxy(handle, {
        get(target, property) {
          const value: unknown = Reflect.get(target, property)
          if (typeof value !== 'function') return value
          const call = (value as (...args: unknown[]) => unknown).bind(target)
          if (property !== 'query' || tripwire) return call
          return (given: unknown, ...more: unknown[]) => {
            const { sql } = given as { sql?: unknown }
            const isWire = sql === wire.set || sql === wire.release
            return call(isWire ? { sql: 'DO 0' } : given, ...more)
          }
        },
      })
    const driver = pool.weakened((handle) => {
      const seen = unleashed.getStore()
      if (seen !== undefined) seen.handle = handle
      return weaken(handle)
    }) as InnodbDriver<Handle>
    const hf = createHoldfast(driver, { locks: { watch: false } })
    const lies: string[] = []
    for (const body of bodiesOf(seed, count)) {
      const run = ++runs
      const written: Written = { attempt: 0, rows: [] }
      const seen: { handle: Handle | undefined } = { handle: undefined }
      const guarded = unleashed.run(seen, async () =>
        hf.guard(
          lockKey('body', place.server, place.client),
          async (tx, { attempt }) => {
            written.attempt = attempt
            await runBody(body, leash ? tx : (seen.handle ?? tx), other, run, written)
          },
          { retry: { attempts: 3 } },
        ),
      )
      const told: Told = await guarded.then(
        () => undefined,
        (error: unknown) => ({ error }),
      )
      const lie = await lieIn(told, written, session, run)
      if (lie !== undefined) lies.push(`${body.join(', ')}: ${lie}`)
    }
    return lies
  }

  test('generated bodies are told the truth', async () => {
    expect(await liesOf({ leash: true, tripwire: true }, 1)).toEqual([])
  })

  test('also those whose statements nobody reads, by the tripwire alone', async () => {
    expect(await liesOf({ leash: false, tripwire: true }, 2)).toEqual([])
  })

  test('control: without the tripwire a procedure that commits is not noticed', async () => {
    const lies = await liesOf({ leash: true, tripwire: false }, 1)
    expect(lies.filter((lie) => lie.includes('call')).length).toBeGreaterThan(0)
  })

  test('control: without either they are told wrong things about each of these', async () => {
    const lies = await liesOf({ leash: false, tripwire: false }, 2)
    const blamed = ['deadlock', 'ddl', 'begin', 'commit', 'rollback,', 'call']
    expect(blamed.filter((step) => !lies.some((lie) => lie.includes(step)))).toEqual([])
  })
})
