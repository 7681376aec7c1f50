import { barrier, deferred } from '@holdfast/testkit'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Claims, createHoldfast } from '../../../../src/mysql.ts'
import { callerTransaction, somebodyWaits } from '../support/caller-transaction.ts'
import { eachInnodb } from '../support/each-innodb.ts'
import type { Handle } from '../support/innodb-clients.ts'
import { type JobRow, JobTable, startOn, usual } from './job-table.ts'

const ids = (claims: readonly { readonly key: readonly string[] }[]): number[] =>
  claims.map(({ key }) => Number(key[0]))

eachInnodb((place) => {
  const database = (): string => new URL(place.url()).pathname.slice(1)
  const waiter = async (): Promise<void> => {
    await using session = await place.session()
    await somebodyWaits(session, database())
  }
  /** A row that somebody has locked in a transaction that is open until the test ends. */
  const locked = async (jobs: JobTable, id: number): Promise<() => Promise<void>> => {
    const session = await place.session()
    onTestFinished(async () => await session[Symbol.asyncDispose]())
    await session.all('BEGIN', `SELECT id FROM ${jobs.name} WHERE id = ${id} FOR UPDATE`)
    return async () => await session.all('ROLLBACK')
  }

  test('rows are claimed oldest first, and come back as they were claimed', async () => {
    const jobs = await JobTable.make(place, 3)
    const claims = startOn(place).hf.claims<JobRow>(jobs.options)
    const got = await claims.claim(2)
    expect(ids(got)).toEqual([1, 2])
    expect(got[0]).toMatchObject({
      key: ['1'],
      attempt: 1,
      row: { id: 1, status: 'claimed', attempts: 1, claim_token: got[0]?.token },
    })
    expect(Object.keys(got[0]?.row ?? {})).not.toContain('#key0')
    expect(ids(await claims.claim(5))).toEqual([3])
    expect(await claims.claim(5)).toEqual([])
    expect(await jobs.states()).toBe('claimed,claimed,claimed')
    expect(await claims.complete(got)).toMatchObject({ kept: got, lost: [] })
    expect(await jobs.states()).toBe('done,done,claimed')
    // Asked again, it is done.
    expect(await claims.complete(got)).toMatchObject({ kept: got, lost: [] })
  })

  test('claimers at the same moment never get the same row', async () => {
    const jobs = await JobTable.make(place, 120)
    const together = barrier(6)
    const got = await Promise.all(
      Array.from({ length: 6 }, async () => {
        const claims = startOn(place, 2).hf.claims<JobRow>(jobs.options)
        const mine: number[] = []
        await together()
        // Whoever finds all the others' rows locked looks again.
        for (let empty = 0; empty < 3; ) {
          const some = await claims.claim(7)
          empty = some.length === 0 ? empty + 1 : 0
          mine.push(...ids(some))
        }
        return mine
      }),
    )
    const all = got.flat().toSorted((a, b) => a - b)
    expect(all).toEqual(Array.from({ length: 120 }, (_, at) => at + 1))
  })

  test('control: looked at without a lock and then written, a row has two owners', async () => {
    const jobs = await JobTable.make(place, 1)
    const { pool, hf } = startOn(place)
    const together = barrier(2)
    const got = await Promise.all(
      Array.from({ length: 2 }, () =>
        hf.transaction(async (tx) => {
          const rows = await pool.rows(tx, `SELECT id FROM ${jobs.name} WHERE status = 'pending'`)
          await together()
          await tx.query(`UPDATE ${jobs.name} SET status = 'claimed' WHERE id = 1`)
          return rows.length
        }),
      ),
    )
    expect(got).toEqual([1, 1])
  })

  test('claiming waits for nobody: a row that is locked is passed over', async () => {
    const jobs = await JobTable.make(place, 3)
    const claims = startOn(place).hf.claims<JobRow>(jobs.options)
    const free = await locked(jobs, 1)
    expect(ids(await claims.claim(1))).toEqual([2])
    expect(ids(await claims.claim(5))).toEqual([3])
    await free()
    expect(ids(await claims.claim(5))).toEqual([1])
  })

  test('with the index that it forces, a claim locks no row that it does not take', async () => {
    // The optimizer would rather sort a few rows of one tenant, and lock them all.
    const jobs = await JobTable.make(place, 40, usual, [
      'KEY tenant (tenant)',
      'KEY due (status, tenant, run_at, id)',
      'KEY leases (status, tenant, lease_until)',
    ])
    await jobs.run(`UPDATE ${jobs.name} SET tenant = id MOD 2`)
    await jobs.run(`ANALYZE TABLE ${jobs.name}`)
    const { pool, hf } = startOn(place)
    const claims = hf.claims<JobRow>({ ...jobs.options, where: { tenant: '0' } })
    const tx = await callerTransaction(pool)
    const even = Array.from({ length: 20 }, (_, at) => 2 * at + 2)
    expect(ids(await claims.claim(tx, 15))).toEqual(even.slice(0, 15))
    expect(ids(await claims.claim(40))).toEqual(even.slice(15))
    await tx.commit()
  })

  describe('the fence', () => {
    const late = async (
      jobs: JobTable,
      claims: Claims<Handle, JobRow>,
    ): Promise<{ old: Awaited<ReturnType<typeof claims.claim>>; now: typeof old }> => {
      const old = await claims.claim(1)
      await jobs.expireLeases()
      expect(await claims.recover()).toEqual({ freed: 1, dead: 0 })
      return { old, now: await claims.claim(1) }
    }

    test.each(['complete', 'fail', 'release', 'heartbeat'] as const)(
      'a late %s with an old token changes nothing',
      async (verb) => {
        const jobs = await JobTable.make(place, 1)
        const claims = startOn(place).hf.claims<JobRow>(jobs.options)
        const { old, now } = await late(jobs, claims)
        const rows = await jobs.run(`SELECT * FROM ${jobs.name}`)
        expect(await claims[verb](old)).toMatchObject({ kept: [], lost: old })
        expect(await jobs.run(`SELECT * FROM ${jobs.name}`)).toEqual(rows)
        expect(await claims.complete(now)).toMatchObject({ kept: now })
      },
    )

    test('control: without a look at the token, the late one finishes what another works on', async () => {
      const jobs = await JobTable.make(place, 1)
      const claims = startOn(place).hf.claims<JobRow>(jobs.options)
      const { now } = await late(jobs, claims)
      await jobs.run(`UPDATE ${jobs.name} SET status = 'done' WHERE id = 1`)
      expect(await claims.heartbeat(now)).toMatchObject({ lost: now })
      expect(await jobs.states()).toBe('done')
    })

    test('what is lost is not waited for, though its row is locked', async () => {
      const jobs = await JobTable.make(place, 1)
      const { hf } = startOn(place)
      const claims = hf.claims<JobRow>(jobs.options)
      const { old } = await late(jobs, claims)
      const free = await locked(jobs, 1)
      expect(await claims.complete(old)).toMatchObject({ lost: old })
      await free()
    })

    test('what fits is waited for, in one transaction with the rest', async () => {
      const jobs = await JobTable.make(place, 3)
      const claims = startOn(place).hf.claims<JobRow>(jobs.options)
      const got = await claims.claim(3)
      const free = await locked(jobs, 2)
      const finishing = claims.complete(got)
      await waiter()
      await free()
      expect(await finishing).toMatchObject({ kept: got, lost: [] })
      expect(await jobs.states()).toBe('done,done,done')
    })

    test('a heartbeat waits for nobody: what is locked is kept, and its deadline stays', async () => {
      const jobs = await JobTable.make(place, 2)
      const claims = startOn(place).hf.claims<JobRow>(jobs.options)
      const got = await claims.claim(2)
      const before = got.map(({ deadline }) => deadline)
      const free = await locked(jobs, 1)
      expect(await claims.heartbeat(got)).toMatchObject({ kept: got, lost: [] })
      expect(got[0]?.deadline).toBe(before[0])
      expect(got[1]?.deadline).toBeGreaterThan(before[1] ?? 0)
      await free()
    })
  })

  describe("in the caller's transaction", () => {
    test('complete commits together with the work, and is undone with it', async () => {
      const jobs = await JobTable.make(place, 1)
      const { hf } = startOn(place)
      const claims = hf.claims<JobRow>(jobs.options)
      const got = await claims.claim(1)
      const failing = hf.transaction(async (tx) => {
        await claims.complete(tx, got)
        throw new Error('mine')
      })
      await expect(failing).rejects.toThrow('mine')
      expect(await jobs.states()).toBe('claimed')
      await hf.transaction(async (tx) => await claims.complete(tx, got))
      expect(await jobs.states()).toBe('done')
    })

    test('one that is lost rejects, so that nothing of it is committed', async () => {
      const jobs = await JobTable.make(place, 2)
      const { hf } = startOn(place)
      const claims = hf.claims<JobRow>(jobs.options)
      const got = await claims.claim(2)
      await jobs.run(`UPDATE ${jobs.name} SET claim_token = UUID() WHERE id = 2`)
      const finishing = hf.transaction(async (tx) => await claims.complete(tx, got))
      await expect(finishing).rejects.toMatchObject({
        code: 'CLAIM_LOST',
        details: { lost: [['2']] },
      })
      expect(await jobs.states()).toBe('claimed,claimed')
    })

    test('outside of one it is refused, and nothing is changed', async () => {
      const jobs = await JobTable.make(place, 1)
      const { pool, hf } = startOn(place)
      const claims = hf.claims<JobRow>(jobs.options)
      const outside = await pool.connect()
      const refused = { code: 'CLAIM_OUTSIDE_TRANSACTION' }
      await expect(claims.claim(outside, 1)).rejects.toMatchObject(refused)
      const got = await claims.claim(1)
      await expect(claims.complete(outside, got)).rejects.toMatchObject(refused)
      await outside.release()
      const nested = hf.transaction(async () => await claims.claim(1))
      await expect(nested).rejects.toMatchObject({ code: 'TX_NESTED' })
      expect(await jobs.states()).toBe('claimed')
    })
  })

  describe('at REPEATABLE READ, the level of most sessions', () => {
    /** A claim whose transaction is not committed until the test says so, at this level instead of its own. */
    const heldClaim = async (
      jobs: JobTable,
      isolation?: 'repeatable read',
    ): Promise<() => Promise<unknown>> => {
      const { driver } = startOn(place).pool
      const [claimed, ended] = [deferred(), deferred()]
      const held = createHoldfast({
        ...driver,
        transaction: async (body, settings) =>
          await driver.transaction(
            async (...args) => {
              const result = await body(...args)
              claimed.resolve()
              await ended.promise
              return result
            },
            isolation === undefined ? settings : { ...settings, isolation },
          ),
      } as typeof driver)
      const claiming = held.claims<JobRow>(jobs.options).claim(1)
      await claimed.promise
      return async () => {
        ended.resolve()
        return await claiming
      }
    }

    test('a claim of ours that finds nothing keeps nobody from adding rows', async () => {
      const jobs = await JobTable.make(place)
      const end = await heldClaim(jobs)
      await jobs.add(1)
      expect(await end()).toEqual([])
    })

    test('control: at that level it does', async () => {
      const jobs = await JobTable.make(place)
      const end = await heldClaim(jobs, 'repeatable read')
      const adding = jobs.add(1)
      await waiter()
      expect(await end()).toEqual([])
      await adding
    })

    test("in the caller's, what others have claimed since its snapshot is not claimed again", async () => {
      const jobs = await JobTable.make(place, 2)
      const { pool, hf } = startOn(place)
      const claims = hf.claims<JobRow>(jobs.options)
      const tx = await callerTransaction(pool, 'REPEATABLE READ')
      await tx.query(`SELECT * FROM ${jobs.name}`)
      expect(ids(await claims.claim(1))).toEqual([1])
      // MariaDB from 11.6 on says by itself that the snapshot is older (1020).
      const told: unknown = await claims
        .claim(tx, 2)
        .then(ids)
        .catch((error: { errno?: unknown }) => error.errno)
      expect([1020, JSON.stringify([2])]).toContain(
        typeof told === 'number' ? told : JSON.stringify(told),
      )
      await tx.rollback()
    })

    test('a complete is of the row as it is, and not of an old snapshot', async () => {
      const jobs = await JobTable.make(place, 1)
      const { pool, hf } = startOn(place)
      const claims = hf.claims<JobRow>(jobs.options)
      const old = await claims.claim(1)
      const tx = await callerTransaction(pool, 'REPEATABLE READ')
      await tx.query(`SELECT * FROM ${jobs.name}`)
      await jobs.expireLeases()
      await claims.recover()
      const told: unknown = await claims.complete(tx, old).catch((error: unknown) => error)
      expect(told).toSatisfy(
        ({ errno, code }: { errno?: unknown; code?: unknown }) =>
          errno === 1020 || code === 'CLAIM_LOST',
      )
      await tx.rollback()
      expect(await jobs.states()).toBe('pending')
    })
  })

  test('a COMMIT whose answer is lost is asked for by the token', async () => {
    const jobs = await JobTable.make(place, 3)
    const { pool } = startOn(place)
    const { driver } = pool
    let lost = 0
    const lossy = createHoldfast({
      ...driver,
      async transaction(body, settings) {
        const result = await driver.transaction(body, settings)
        lost += 1
        if (lost > 1) return result
        throw Object.assign(new Error('reset'), { code: 'ECONNRESET' })
      },
    } as typeof driver)
    const claims = startOn(place).hf.claims<JobRow>(jobs.options)
    const got = await claims.claim(3)
    const [done, failed] = [got.slice(0, 1), got.slice(1, 2)]
    expect(await lossy.claims<JobRow>(jobs.options).complete(done)).toMatchObject({ kept: done })
    lost = 0
    // A row that is free again does not tell who has freed it.
    const failing = lossy.claims<JobRow>(jobs.options).fail(failed)
    await expect(failing).rejects.toMatchObject({ code: 'COMMIT_UNKNOWN' })
    lost = 0
    // Claimed twice, a row would be nobody's.
    const claiming = lossy.claims<JobRow>(jobs.options).claim(1)
    await expect(claiming).rejects.toMatchObject({ code: 'COMMIT_UNKNOWN' })
    expect(await jobs.states()).toBe('done,pending,claimed')
  })
}, 'the server')
