import { waitUntil } from '@holdfast/testkit'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createHoldfast, isHoldfastError } from '../../../src/index.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { tryLease } from '../../../src/leases/acquire-lease.ts'
import type { HeldLease } from '../../../src/leases/held-lease.ts'
import type { LeaseLostEvent } from '../../../src/entries/leases.ts'
import { leaseName } from '../../../src/leases/lease-name.ts'
import { leasesAlone as runAlone } from '../../../src/engines/postgres/leases/lease-calls.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { callerTransaction, eventsOn } from '../../support/pg-fixture.ts'

const fixture = ledgerFixture()
const leases = () => fixture.hf.leases

/** As if its time to live had passed: what others see of a holder that stopped renewing. */
async function expire(name: string): Promise<void> {
  await fixture.observer.query(
    `UPDATE holdfast.lease SET expires_at = clock_timestamp() - interval '1 ms' WHERE name = $1`,
    [name],
  )
}

describe('acquiring', () => {
  test('one holds it, others do not, and after a release the next does with a higher token', async () => {
    const name = fresh()
    const first = await leases().acquire(name, { note: 'first' })
    expect(first.signal.aborted).toBe(false)
    expect(await leases().tryAcquire(name)).toBeUndefined()
    expect(await leases().read(name)).toMatchObject({
      state: 'held',
      token: first.token,
      note: 'first',
    })
    expect(await first.release()).toBe(true)
    expect(first.signal.aborted).toBe(true)
    expect(await leases().read(name)).toMatchObject({ state: 'free' })
    const second = await leases().tryAcquire(name)
    expect(second?.token).toBeGreaterThan(first.token)
    // It was held until then; that somebody else has it now changes nothing.
    expect(await first.release()).toBe(true)
    expect(await first.renew()).toBe(false)
    expect(await leases().read(name)).toMatchObject({ state: 'held', token: second?.token })
    await second?.release()
  })

  test('many at once: one', async () => {
    const name = fresh()
    const all = await Promise.all(
      Array.from({ length: 16 }, async () => await leases().tryAcquire(name)),
    )
    const [winner, ...others] = all.filter((lease) => lease !== undefined)
    expect(others).toEqual([])
    expect(winner).toBeDefined()
    await winner?.release()
  })

  test('waits for a release, and says so if that takes too long', async () => {
    const name = fresh()
    const first = await leases().acquire(name)
    await expect(leases().acquire(name, { wait: 50, retryEvery: 10 })).rejects.toMatchObject({
      code: 'LEASE_TIMEOUT',
      retryable: true,
    })
    const waiting = leases().acquire(name, { wait: Number.POSITIVE_INFINITY, retryEvery: 10 })
    await first.release()
    const second = await waiting
    expect(second.token).toBeGreaterThan(first.token)
    await second.release()
  })

  test('a signal ends the wait', async () => {
    const name = fresh()
    await using _ = await leases().acquire(name)
    const stop = new AbortController()
    const waiting = leases().acquire(name, { signal: stop.signal })
    const mine = new Error('mine')
    stop.abort(mine)
    await expect(waiting).rejects.toBe(mine)
  })

  test('an expired one is free for others, and stays lost for its holder', async () => {
    const name = fresh()
    const first = await leases().acquire(name)
    await expire(name)
    expect(await leases().read(name)).toMatchObject({ state: 'free' })
    expect(await first.renew()).toBe(false)
    expect(first.signal.reason).toMatchObject({
      code: 'LEASE_LOST',
      name: 'LostError',
      details: { reason: 'expired' },
    })
    await using second = await leases().tryAcquire(name)
    expect(second?.token).toBeGreaterThan(first.token)
  })

  test('after a loss others wait for the delay; after a release they do not', async () => {
    const name = fresh()
    const options = { delayAfterLoss: '1 h' } as const
    const first = await leases().acquire(name, options)
    await first.release()
    await (await leases().tryAcquire(name, options))?.renew()
    await expire(name)
    expect(await leases().read(name)).toMatchObject({ state: 'delayed' })
    expect(await leases().tryAcquire(name)).toBeUndefined()
    await fixture.observer.query(`UPDATE holdfast.lease SET delay = '0' WHERE name = $1`, [name])
    await using third = await leases().tryAcquire(name)
    expect(third).toBeDefined()
  })

  test('the holder decides for how long, whatever the others are set to', async () => {
    const name = fresh()
    await using _ = await leases().acquire(name, { ttl: '1 h' })
    const { rows } = await fixture.observer.query<{ ok: boolean }>(
      `SELECT expires_at - acquired_at = interval '1 h' AS ok FROM holdfast.lease WHERE name = $1`,
      [name],
    )
    expect(rows).toEqual([{ ok: true }])
    expect(await leases().tryAcquire(name, { ttl: '100 ms' })).toBeUndefined()
  })

  test('the same owner asking again gets the same token: an answer can be lost', async () => {
    const name = fresh()
    const owner = fresh()
    const ask = async (): Promise<string> =>
      (
        await fixture.observer.query<{ answer: string }>(
          `SELECT holdfast.acquire_lease($1, $1, $2, 1000, 0, NULL, NULL) AS answer`,
          [name, owner],
        )
      ).rows[0]?.answer as string
    const first = await ask()
    expect(await ask()).toBe(first)
  })

  test('the connection is lost before the answer: it is asked again, and is one', async () => {
    const name = fresh()
    let killed = 0
    const driver = fromPg(fixture.pool)
    const hf = createHoldfast({
      ...driver,
      alone: {
        async query(statement) {
          const rows = await driver.alone.query(statement)
          killed += 1
          if (killed === 1) throw Object.assign(new Error('reset'), { code: 'ECONNRESET' })
          return rows
        },
      },
    })
    await using lease = await hf.leases.acquire(name)
    expect(await leases().read(name)).toMatchObject({ state: 'held', token: lease.token })
    expect(killed).toBe(2)
  })

  test.each([
    ['ttl', { ttl: 99 }],
    ['ttl', { ttl: '8 days' }],
    ['stopBefore', { ttl: '1 s', stopBefore: '501 ms' }],
  ] as const)('%s that cannot work is refused', async (option, options) => {
    await expect(leases().acquire(fresh(), options)).rejects.toMatchObject({
      code: 'OPTION_INVALID',
      details: { option },
    })
  })

  test.each(['', 'a\0b', '\ud800', 'x'.repeat(513)])(
    'a name that cannot be stored',
    async (name) => {
      await expect(leases().tryAcquire(name)).rejects.toMatchObject({ code: 'LEASE_NAME_INVALID' })
      await expect(leases().tryAcquire('a', { scope: name })).rejects.toMatchObject({
        code: 'LEASE_NAME_INVALID',
      })
    },
  )

  test('inside a transaction of ours it is refused', async () => {
    await expect(
      fixture.hf.transaction(async () => await leases().tryAcquire(fresh())),
    ).rejects.toMatchObject({ code: 'TX_NESTED' })
  })

  test('without the schema it says so', async () => {
    const elsewhere = fixture.create({ leases: { schema: 'nowhere' } })
    await expect(elsewhere.leases.tryAcquire('a')).rejects.toMatchObject({ code: 'SCHEMA_MISSING' })
  })
})

describe('tokens', () => {
  test('never go back: after a delete, and where the clock does', async () => {
    const name = fresh()
    const first = await leases().acquire(name)
    await first.release()
    await fixture.observer.query('DELETE FROM holdfast.lease WHERE name = $1', [name])
    const second = await leases().acquire(name)
    expect(second.token).toBeGreaterThan(first.token)
    await second.release()
    // As if the server's clock had been an hour ahead until now.
    await fixture.observer.query('UPDATE holdfast.lease_counter SET token = token + 3600000000')
    const third = await leases().acquire(name)
    expect(third.token).toBeGreaterThan(second.token + 3_600_000_000n)
    await third.release()
    expect((await leases().acquire(name)).token).toBe(third.token + 1n)
  })

  test('control: counted in the row they would', async () => {
    const name = fresh()
    const first = await leases().acquire(name)
    await fixture.observer.query('DELETE FROM holdfast.lease_counter')
    await fixture.observer.query('DELETE FROM holdfast.lease WHERE name = $1', [name])
    const { rows } = await fixture.observer.query<{ token: string }>(
      `INSERT INTO holdfast.lease_counter AS c VALUES (0, 1)
       ON CONFLICT (bucket) DO UPDATE SET token = c.token + 1 RETURNING token`,
    )
    expect(BigInt(rows[0]?.token as string)).toBeLessThan(first.token)
    await fixture.observer.query('DELETE FROM holdfast.lease_counter')
    // And with the counter gone as well, the clock is what keeps them from going back.
    expect((await leases().acquire(name)).token).toBeGreaterThan(first.token)
  })

  test('S20: none is ahead of the clock, however many are acquired in one scope', async () => {
    const scope = fresh()
    await leases().acquire('first', { scope, renew: false })
    await fixture.observer.query(`DO $$ BEGIN
      FOR n IN 1..3000 LOOP
        PERFORM holdfast.acquire_lease('${scope}', 'name-' || n, gen_random_uuid(), 3600000, 0, NULL, NULL);
        COMMIT;
      END LOOP;
    END $$`)
    const { rows } = await fixture.observer.query<{ now: string }>(
      'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint::text AS now',
    )
    const last = await leases().acquire('last', { scope, renew: false })
    const asked = BigInt(rows[0]?.now as string)
    // Its own moment, and not one that was counted up to.
    expect(last.token - asked).toBeLessThan(1_000_000n)
    expect(last.token).toBeGreaterThan(asked)
  })

  test('S20, control: where the counter is lost, only a clock that is not behind keeps them growing', async () => {
    const scope = fresh()
    await leases().acquire('known', { scope, renew: false })
    const counter = `holdfast.lease_counter WHERE bucket = holdfast.bucket_of('${scope}')`
    // As if the clock of a primary that is gone had been an hour ahead.
    await fixture.observer.query(
      `UPDATE ${counter.replace(' WHERE', ' SET token = token + 3600000000 WHERE')}`,
    )
    const lost = await leases().acquire('lost', { scope, renew: false })
    await fixture.observer.query(`DELETE FROM ${counter}`)
    expect((await leases().acquire('next', { scope })).token).toBeLessThan(lost.token)
  })

  test('forgetting deletes rows that nobody held for so long, and no token', async () => {
    const [kept, gone] = [fresh(), fresh()]
    await using _ = await leases().acquire(kept)
    const forgotten = await leases().acquire(gone)
    await forgotten.release()
    expect(await leases().forget({ idleFor: '1 h' })).toBe(0)
    await fixture.observer.query(
      `UPDATE holdfast.lease SET acquired_at = acquired_at - interval '2 h',
         expires_at = expires_at - interval '2 h' WHERE name = $1`,
      [gone],
    )
    expect(await leases().forget({ idleFor: '1 h' })).toBe(1)
    expect(await leases().read(gone)).toBeUndefined()
    expect(await leases().read(kept)).toMatchObject({ state: 'held' })
    expect((await leases().acquire(gone)).token).toBeGreaterThan(forgotten.token)
  })
})

describe('renewal', () => {
  test('goes on in the background, for longer than the lease lives', async () => {
    const name = fresh()
    const ttl = 1_500
    const lease = await leases().acquire(name, { ttl })
    await waitUntil('it was renewed beyond its first expiry', async () => {
      const { acquiredAt, expiresAt } = (await leases().read(name)) ?? {}
      return Number(expiresAt) - Number(acquiredAt) > 2 * ttl || undefined
    })
    expect(lease.signal.aborted).toBe(false)
    expect(await leases().tryAcquire(name)).toBeUndefined()
    expect(await lease.release()).toBe(true)
  })

  test('stops before expiry if nothing gets through, and says why', async () => {
    const lost = eventsOn<LeaseLostEvent>('holdfast:lease.lost')
    const failed = eventsOn<{ error: unknown }>('holdfast:lease.renewal-failed')
    const name = fresh()
    let broken = false
    const driver = fromPg(fixture.pool)
    const hf = createHoldfast({
      ...driver,
      alone: {
        query: async (statement) => {
          if (broken) throw Object.assign(new Error('reset'), { code: 'ECONNRESET' })
          return await driver.alone.query(statement)
        },
      },
    })
    const lease = await hf.leases.acquire(name, { ttl: 2_000, stopBefore: 1_000 })
    broken = true
    expect(lease.remainingMs()).toBeLessThanOrEqual(1_000)
    await new Promise((resolve) => {
      lease.signal.addEventListener('abort', resolve)
    })
    // Still held for the server, so nobody else can have begun.
    expect(await leases().read(name)).toMatchObject({ state: 'held', token: lease.token })
    expect(lease.signal.reason).toMatchObject({
      code: 'LEASE_LOST',
      details: { reason: 'deadline', subject: name },
    })
    expect(isHoldfastError(lease.signal.reason, 'LEASE_LOST')).toBe(true)
    expect(lost.filter((event) => event.name === name)).toMatchObject([{ reason: 'deadline' }])
    expect(failed.length).toBeGreaterThan(0)
    expect(lease.remainingMs()).toBe(0)
    expect(await lease.renew()).toBe(false)
  })

  test('a process that stood still knows as soon as it looks, before any timer', async () => {
    const lease = await leases().acquire(fresh(), { ttl: 400 })
    const kept = lease.signal
    const enough = new AbortController()
    let seen: object | undefined
    const body = async (term: { signal: AbortSignal; remainingMs(): number }): Promise<void> => {
      const { signal } = term
      for (const ends = performance.now() + 500; performance.now() < ends; );
      // Control: signals that nobody looks at through their lease have to wait for a timer.
      const before = [kept.aborted, signal.aborted]
      const after = [lease.signal.aborted, term.signal.aborted]
      seen = { before, after, left: [lease.remainingMs(), term.remainingMs()] }
      enough.abort()
    }
    const leader = fixture.hf.leader({ name: fresh(), ttl: 400 })
    await leader.run(body, { signal: enough.signal })
    expect(seen).toEqual({ before: [false, false], after: [true, true], left: [0, 0] })
    expect(lease.signal.reason).toMatchObject({ details: { reason: 'deadline' } })
  })

  test('nobody else has it before its holder was told to stop', async () => {
    const name = fresh()
    const lease = await leases().acquire(name, { ttl: 800, renew: false })
    await using other = await leases().acquire(name, { retryEvery: 5 })
    expect(other.token).toBeGreaterThan(lease.token)
    expect(lease.signal.aborted).toBe(true)
  })

  test('control: without the deadline somebody else has it, and its holder goes on', async () => {
    const name = fresh()
    const terms = { ttlMs: 800, renewMs: undefined, stopBeforeMs: -60_000, delayMs: 0 }
    const lease = (await tryLease(
      { schema: 'holdfast', name: leaseName(name), terms, note: undefined, sessionLock: undefined },
      runAlone(fromPg(fixture.pool), {}),
    )) as HeldLease
    await using other = await leases().acquire(name, { retryEvery: 5 })
    expect(other.token).toBeGreaterThan(lease.held.token)
    expect(lease.signal.aborted).toBe(false)
    await lease.release()
  })

  test('what somebody else took is noticed at the next renewal', async () => {
    const name = fresh()
    const lease = await leases().acquire(name, { ttl: 3_000 })
    await expire(name)
    await using other = await leases().tryAcquire(name)
    expect(other).toBeDefined()
    await new Promise((resolve) => {
      lease.signal.addEventListener('abort', resolve)
    })
    expect(lease.signal.reason).toMatchObject({ details: { reason: 'taken' } })
  })

  test('await using releases it', async () => {
    const name = fresh()
    {
      await using lease = await leases().acquire(name)
      expect(await leases().read(name)).toMatchObject({ state: 'held', token: lease.token })
    }
    expect(await leases().read(name)).toMatchObject({ state: 'free' })
  })

  test('release in a transaction: free when it commits, and not if it rolls back', async () => {
    const name = fresh()
    const lease = await leases().acquire(name)
    const undone = await callerTransaction(fixture)
    expect(await lease.release(undone)).toBe(true)
    expect(await leases().tryAcquire(name)).toBeUndefined()
    await undone.query('ROLLBACK')
    expect(await leases().read(name)).toMatchObject({ state: 'held' })
    const client = await callerTransaction(fixture)
    expect(await lease.release(client)).toBe(true)
    await client.query('COMMIT')
    await using next = await leases().tryAcquire(name)
    expect(next).toBeDefined()
  })

  test('a process that has nothing else to do is not kept alive by it', async () => {
    const lease = await leases().acquire(fresh(), { ttl: '1 h' })
    onTestFinished(async () => void (await lease.release()))
    const timers = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout')
    await lease.release()
    expect(process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout')).toEqual(timers)
  })
})
