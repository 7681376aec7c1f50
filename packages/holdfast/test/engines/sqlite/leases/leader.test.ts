import { once } from 'node:events'
import { waitUntil } from '@holdfast/testkit'
import { expect, test } from 'vitest'
import { createHoldfast, type Holdfast, migrate, type Term } from '../../../../src/sqlite.ts'
import { fresh } from '../support/caller-transaction.ts'
import { crewOf, told } from '../support/crew.ts'
import { eachSqlite } from '../support/each-sqlite.ts'
import { type Handle, value } from '../support/sqlite-clients.ts'

eachSqlite(['CREATE TABLE written (seq INTEGER PRIMARY KEY, token TEXT)'], (place) => {
  const crew = crewOf(place)
  const start = async (): Promise<Holdfast<Handle>> => {
    const driver = place.driver()
    await migrate(driver)
    return createHoldfast(driver)
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

  test('of three processes one leads; when it is killed the next does, with a higher token', async () => {
    await start()
    const name = fresh()
    const all = await Promise.all([1, 2, 3].map(() => crew.start('lead', name)))
    const led = new Map(all.map((child) => [child, told(child)]))
    const leaderOf = async (candidates: typeof all): Promise<(typeof all)[number]> =>
      await Promise.race(
        candidates.map(async (child) => {
          expect(await led.get(child)).toBe('leads')
          return child
        }),
      )
    const token = (): bigint =>
      BigInt(
        value(
          place.open(),
          'SELECT CAST(token AS TEXT) FROM holdfast_lease WHERE name = ?',
          name,
        ) as string,
      )
    for (const child of all) child.send('go')
    const first = await leaderOf(all)
    const before = token()
    await crew.kill(first)
    const others = all.filter((child) => child !== first)
    const second = await leaderOf(others)
    const between = token()
    expect(between).toBeGreaterThan(before)
    second.send('stop')
    expect(await told(second)).toEqual([String(between)])
    await leaderOf(others.filter((child) => child !== second))
    expect(token()).toBeGreaterThan(between)
  })

  test('a leader that was deposed writes nothing; control: without the guard it does', async () => {
    const hf = await start()
    const name = fresh()
    const first = stand(hf, name)
    const term = await waitUntil('it leads', () => first.terms[0])
    const db = place.open()
    // As if its process had stood still.
    db.prepare('UPDATE holdfast_lease SET expires = expires - 1000000 WHERE name = ?').run(name)
    const second = stand(hf, name)
    const next = await waitUntil('the next one leads', () =>
      [...second.terms, ...first.terms.slice(1)].find(({ token }) => token > term.token),
    )
    const write = (by: Term<Handle>, guarded: boolean): Promise<void> =>
      hf.transaction(async (tx) => {
        if (guarded) await by.guard(tx)
        tx.prepare('INSERT INTO written (token) VALUES (?)').run(String(by.token))
      })
    await write(next, true)
    await expect(write(term, true)).rejects.toMatchObject({ code: 'LEASE_LOST' })
    await write(term, false)
    const rows = db.prepare('SELECT token FROM written ORDER BY seq').all()
    expect(rows).toEqual([{ token: String(next.token) }, { token: String(term.token) }])
    await Promise.all([first.stop(), second.stop()])
  })

  test('close ends it and gives leadership back; by session there is none', async () => {
    const hf = await start()
    const name = fresh()
    const leading = hf.leader({ name }).run(async ({ signal }) => {
      if (!signal.aborted) await once(signal, 'abort')
    })
    await waitUntil('it leads', async () =>
      (await hf.leases.read(name))?.state === 'held' ? true : undefined,
    )
    expect(await hf.close()).toEqual({ left: [] })
    await leading
    const other = await start()
    expect(await other.leases.read(name)).toMatchObject({ state: 'free' })
    const session = { session: async () => ({ end: async () => undefined }) }
    const bySession = other.leader({ name, session } as never).run(async () => undefined)
    await expect(bySession).rejects.toMatchObject({ code: 'ENGINE_NOT_OFFERED' })
  })
})
