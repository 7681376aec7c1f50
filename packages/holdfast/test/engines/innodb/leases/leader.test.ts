import { once } from 'node:events'
import { waitUntil } from '@holdfast/testkit'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { createHoldfast, type Holdfast, migrate, type Term } from '../../../../src/mysql.ts'
import { fresh } from '../support/caller-transaction.ts'
import { eachInnodb } from '../support/each-innodb.ts'
import type { Handle } from '../support/innodb-clients.ts'

eachInnodb((place) => {
  beforeAll(async () => {
    await using pool = place.pool()
    await using session = await place.session()
    await migrate(pool.driver)
    await session.rows(
      'CREATE TABLE written (seq INT AUTO_INCREMENT PRIMARY KEY, token BIGINT) ENGINE=InnoDB',
    )
  })
  const start = (): Holdfast<Handle> => {
    const pool = place.pool(4)
    onTestFinished(async () => await pool[Symbol.asyncDispose]())
    return createHoldfast(pool.driver)
  }

  interface Standing {
    readonly terms: Term<Handle>[]
    stop(): Promise<void>
  }
  const stand = (hf: Holdfast<Handle>, name: string): Standing => {
    const stop = new AbortController()
    const terms: Term<Handle>[] = []
    const done = hf.leader({ name, ttl: 1_000, retryEvery: 20 }).run(
      async (term) => {
        terms.push(term)
        if (!term.signal.aborted) await once(term.signal, 'abort')
      },
      { signal: stop.signal },
    )
    return {
      terms,
      stop: async () => {
        stop.abort()
        await done
      },
    }
  }

  test('one of three leads; when it resigns the next does, with a higher token', async () => {
    const hf = start()
    const name = fresh()
    const all = [1, 2, 3].map(() => stand(hf, name))
    const tokens: bigint[] = []
    while (all.length > 0) {
      const leading = await waitUntil('one leads', () =>
        all.find(({ terms }) => terms.some(({ signal }) => !signal.aborted)),
      )
      expect(all.filter(({ terms }) => terms.length > 0)).toEqual([leading])
      tokens.push(leading.terms[0]?.token as bigint)
      await leading.stop()
      all.splice(all.indexOf(leading), 1)
    }
    expect(tokens).toEqual(tokens.toSorted((a, b) => Number(a - b)))
    expect(new Set(tokens).size).toBe(3)
  })

  test('a leader that was deposed writes nothing; control: without the guard it does', async () => {
    const hf = start()
    const name = fresh()
    const first = stand(hf, name)
    const term = await waitUntil('it leads', () => first.terms[0])
    await using session = await place.session()
    // As if its process had stood still.
    await session.rows(
      `UPDATE holdfast_lease_holder h JOIN holdfast_lease l ON l.id = h.id
       SET h.expires = h.expires - 1000000 WHERE l.name = ?`,
      [name],
    )
    const second = stand(hf, name)
    const next = await waitUntil('the next one leads', () =>
      [...second.terms, ...first.terms.slice(1)].find(({ token }) => token > term.token),
    )
    const write = (by: Term<Handle>, guarded: boolean): Promise<void> =>
      hf.transaction(async (tx) => {
        if (guarded) await by.guard(tx)
        await tx.query(`INSERT INTO written (token) VALUES (${by.token})`)
      })
    await write(next, true)
    await expect(write(term, true)).rejects.toMatchObject({ code: 'LEASE_LOST' })
    await write(term, false)
    const rows = await session.rows('SELECT token FROM written ORDER BY seq')
    expect(rows.map(({ token }) => BigInt(token as number))).toEqual([next.token, term.token])
    await Promise.all([first.stop(), second.stop()])
  })

  test('close ends it and gives leadership back; by session there is none', async () => {
    const hf = start()
    const name = fresh()
    const leading = hf.leader({ name }).run(async ({ signal }) => {
      if (!signal.aborted) await once(signal, 'abort')
    })
    await waitUntil('it leads', async () =>
      (await hf.leases.read(name))?.state === 'held' ? true : undefined,
    )
    expect(await hf.close()).toEqual({ left: [] })
    await leading
    const other = start()
    expect(await other.leases.read(name)).toMatchObject({ state: 'free' })
    const session = { session: async () => ({ end: async () => undefined }) }
    const bySession = other.leader({ name, session } as never).run(async () => undefined)
    await expect(bySession).rejects.toMatchObject({ code: 'ENGINE_NOT_OFFERED' })
  })
}, 'the server')
