import { inspect } from 'node:util'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { isHoldfastError } from '../../../src/core/errors.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast } from '../../../src/index.ts'
import { tableText } from '../../support/claims-fixture.ts'
import { ledgerFixture } from '../../support/ledger-fixture.ts'
import { callerTransaction } from '../../support/pg-fixture.ts'
import { callOf, ended, ownerOf, surface } from '../../support/surface.ts'

/**
 * Every option of every method of the surface, misspelt and of another type: it is told at once, before anything is sent
 * to the database. Which options there are is what a method answers to one that there is none of; that this is all that
 * its types have, the compiler sees to (`satisfies KnownOptions`).
 */
const fixture = ledgerFixture(tableText('job'))

/** Methods that take no options. Those of `claims()` that end a claim look at the claim first; see `work()`. */
const withoutOptions: ReadonlySet<string> = new Set([
  'locks.assertHeld',
  'locks.selfTest',
  'observe.locks',
  'observe.session',
  'observe.hotKeys',
  'observe.books',
  'observe.followers',
  'observe.claims',
  'observe.record().stop',
  'observe.record().dispose',
  'ledger.startFollower().stop',
  'ledger.followers',
  'ledger.unfollow',
  'ledger.startSweeper().stop',
  'ledger.books',
  'leases.acquire().guard',
  'leases.acquire().renew',
  'leases.acquire().release',
  'leases.acquire().dispose',
  'leases.tryAcquire().guard',
  'leases.tryAcquire().renew',
  'leases.tryAcquire().release',
  'leases.tryAcquire().dispose',
  'leases.guard',
  'schedule().start',
  'schedule().fire',
  'schedule().fireAt',
  'schedule().runNow',
  'schedule().pause',
  'schedule().resume',
  'quota().settle',
  'quota().release',
  'quota().extend',
  'credits().settle',
  'credits().release',
  'credits().extend',
  'claims().claim',
  'claims().heartbeat',
  'claims().complete',
  'claims().fail',
  'claims().release',
  'claims().run().drain',
  'claims().run().dispose',
  'claims().check',
  'claims().dead.get',
  'claims(transaction).take',
  'claims(transaction).finish',
  'work().claim',
  'work().run().drain',
  'work().run().dispose',
  'work().check',
  'work().dead.get',
])

/** Options whose value may be whatever somebody has. */
const anything: ReadonlySet<string> = new Set(['error', 'payload'])

let sent = 0
const count = (): void => {
  sent += 1
}
beforeEach(() => fixture.pool.on('acquire', count))
afterEach(() => fixture.pool.off('acquire', count))

test.each(Object.keys(surface))('U6: %s', async (path) => {
  const hf = createHoldfast(fromPg(fixture.pool), { wait: 'nowait' })
  const tx = await callerTransaction(fixture)
  const { method, right } = callOf(path, tx)
  if (method === undefined) return
  const on = (await ownerOf(path, hf, tx)) as Record<PropertyKey, (...args: unknown[]) => unknown>
  const { connection } = tx as unknown as { connection: { stream: { write: () => boolean } } }
  const { write } = connection.stream
  connection.stream.write = function counted(...args) {
    count()
    return write.apply(this, args)
  }
  const call = async (args: readonly unknown[]): Promise<unknown> => {
    try {
      await ended(await on[method]?.(...args))
      return 'nothing was thrown'
    } catch (error) {
      return error
    }
  }
  const wrong: string[] = []
  let places = 0
  try {
    for (let at = 0; at <= right.length; at += 1) {
      const given = right[at]
      if (given !== undefined && !isPlain(given)) continue
      const asked = async (more: object): Promise<unknown> =>
        await call(right.toSpliced(at, 1, { ...(given as object | undefined), ...more }))
      const allowed = allowedBy(await asked({ zzyzx: 1 }))
      if (allowed === undefined) continue
      places += 1
      sent = 0
      for (const name of allowed) {
        const misspelt = `${name[0]}${name}`
        const told = await asked({
          [misspelt]: (given as Record<string, unknown> | undefined)?.[name] ?? 1,
        })
        const { details, code } = told as { code?: unknown; details?: Record<string, unknown> }
        if (code !== 'OPTION_INVALID' || details?.['didYouMean'] !== name)
          wrong.push(`${misspelt}: ${String(told)}`)
        if (anything.has(name)) continue
        for (const value of [Symbol('some'), [Symbol('other')]]) {
          const typed = await asked({ [name]: value })
          if (!isHoldfastError(typed) || typed.name !== 'UsageError')
            wrong.push(`${name}: ${inspect(value)}: ${String(typed)}`)
        }
        if (sent > 0) wrong.push(`${name}: ${sent} sent`)
        sent = 0
      }
    }
    expect(wrong).toEqual([])
    expect(places > 0).toBe(!withoutOptions.has(path))
  } finally {
    connection.stream.write = write
    await hf.close({ within: 1, leaveAfter: 1_000 })
  }
})

/** What a method says that it takes, if this is where it takes options. */
function allowedBy(error: unknown): readonly string[] | undefined {
  if (!isHoldfastError(error, 'OPTION_INVALID')) return undefined
  return error.details['allowed'] as readonly string[] | undefined
}

function isPlain(given: unknown): boolean {
  return given instanceof Object && Object.getPrototypeOf(given) === Object.prototype
}
