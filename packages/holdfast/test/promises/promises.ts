import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { barrier, deferred } from '@holdfast/testkit'
import { expect } from 'vitest'
import { type LockKey, lockKey } from '../../src/index.ts'
import type { Row } from '../../src/core/driver.ts'
import type { Bench, Offered } from './bench.ts'

/** What a promise is kept with. */
export interface Scene<Tx> {
  /** Two processes' worth. */
  readonly a: Offered<Tx>
  readonly b: Offered<Tx>
  readonly bench: Bench<Tx>
  /** The name of what both are after. In the control each time another one: then nothing is promised. */
  name(): string
  /** The row of it. */
  row(): number
  /** The table of its jobs. */
  jobs(): string
  /** One statement in a transaction. In the control it is sent by somebody else. */
  run(tx: Tx, text: string): Promise<readonly Row[]>
}

/** One sentence about one call, and what shows that it is true. */
export interface Promised {
  readonly call: string
  readonly promise: string
  keep<Tx>(scene: Scene<Tx>): Promise<void>
}

const key = (name: string): LockKey => lockKey('promises', name)
/** Whether a lock is shown as that key. */
const isKey = (lock: { readonly name: string }, name: string): boolean =>
  lock.name === key(name).name
/** So long apart that no test meets a real tick. */
const weekly = { every: '7 days' } as const
const patient = { wait: '20 s' } as const
/** Clients with typed tables do not know it. */
const table = 'promised_row' as never

/** This engine has no such call. */
export class NotOffered extends Error {}

function of<T>(offered: T | undefined): T {
  if (offered === undefined) throw new NotOffered()
  return offered
}

const done = async <Tx>({ run }: Scene<Tx>, tx: Tx, work: string): Promise<void> =>
  void (await run(tx, `INSERT INTO promised_effect (id, work) VALUES (1, '${work}')`))

async function countOf<Tx>({ bench }: Scene<Tx>, work: string): Promise<number> {
  const [row] = await bench.look(
    `SELECT COUNT(*) AS n FROM promised_effect WHERE work LIKE '${work}%'`,
  )
  return Number(row?.['n'])
}

async function valueOf<Tx>({ bench }: Scene<Tx>, id: number): Promise<number> {
  const [row] = await bench.look(`SELECT v FROM promised_row WHERE id = ${id}`)
  return Number(row?.['v'])
}

/** What the docs say, and what is tried: of each client on each engine, in this order. */
export const promises: readonly Promised[] = [
  {
    call: 'transaction',
    promise: 'What it resolves with is saved; of what it rejects with nothing is.',
    async keep(scene) {
      const { a } = scene
      const work = scene.name()
      await of(a.transaction)(async (tx) => await done(scene, tx, `${work} kept`))
      const failing = of(a.transaction)(async (tx) => {
        await done(scene, tx, `${work} undone`)
        throw new Error('mine')
      })
      await expect(failing).rejects.toThrow('mine')
      expect([
        await countOf(scene, `${work} kept`),
        await countOf(scene, `${work} undone`),
      ]).toEqual([1, 0])
    },
  },
  {
    call: 'guard',
    promise: 'While one body holds the key, no other begins.',
    async keep({ a, b, name }) {
      const [begun, mayEnd] = [deferred(), deferred()]
      const order: string[] = []
      const first = of(a.guard)(key(name()), async () => {
        begun.resolve()
        await mayEnd.promise
        order.push('the first ends')
      })
      await begun.promise
      const second = of(b.guard)(
        key(name()),
        async () => void order.push('the second begins'),
        patient,
      )
      const third = await of(b.tryGuard)(key(name()), async () => 'in')
      mayEnd.resolve()
      await Promise.all([first, second])
      expect(third).toMatchObject({ ok: false })
      expect(order).toEqual(['the first ends', 'the second begins'])
    },
  },
  {
    call: 'tryGuard',
    promise: 'Says at once that somebody has the key, and runs nothing.',
    async keep({ a, b, name }) {
      const inside = await of(a.guard)(key(name()), async () => {
        const tried = await of(b.tryGuard)(key(name()), async () => 'in')
        return tried.ok
      })
      expect(inside).toBe(false)
      expect(await of(b.tryGuard)(key(name()), async () => 'in')).toMatchObject({ result: 'in' })
    },
  },
  {
    call: 'locks.acquire',
    promise: 'Held in a transaction of yours until that ends.',
    async keep({ a, b, bench, name }) {
      const inside = await bench.own(async (tx) => {
        await of(a.locks).acquire(tx, key(name()))
        return await of(b.tryGuard)(key(name()), async () => 'in')
      })
      expect(inside).toMatchObject({ ok: false })
      expect(await of(b.tryGuard)(key(name()), async () => 'in')).toMatchObject({ ok: true })
    },
  },
  {
    call: 'observe.locks',
    promise: 'Who waits for a key is shown behind its holder, by the name of the key.',
    async keep({ a, b, name }) {
      const observe = of(a.observe)
      const [begun, mayEnd] = [deferred(), deferred()]
      const held = name()
      const first = of(a.guard)(key(held), async () => {
        begun.resolve()
        await mayEnd.promise
      })
      await begun.promise
      let isOver = false
      const second = of(b.guard)(key(name()), async () => undefined, { ...patient, queue: false })
      const ended = second.finally(() => (isOver = true))
      const isSeen = async (): Promise<boolean> => {
        const { sessions } = await observe.locks()
        const holders = sessions.filter(({ holds }) => holds.some((lock) => isKey(lock, held)))
        return sessions.some(({ waitsFor, blockedBy }) => {
          const behind = blockedBy.some(({ pid }) => holders.some((each) => each.pid === pid))
          return waitsFor !== undefined && isKey(waitsFor, held) && behind
        })
      }
      let seen = false
      try {
        // Seldom enough that MariaDB shows something new each time.
        while (!seen && !isOver) {
          seen = await isSeen()
          if (!seen) await pause(200)
        }
      } finally {
        mayEnd.resolve()
        await Promise.all([first, ended])
      }
      expect(seen).toBe(true)
    },
  },
  {
    call: 'rows.lock',
    promise: 'The row stays as it is until the transaction ends.',
    async keep({ a, b, row }) {
      await of(a.transaction)(async (tx) => {
        await of(a.rows?.lock)(tx, table, [row()])
        const other = of(b.transaction)(
          async (tx2) => await of(b.rows?.lock)(tx2, table, [row()], { wait: 'nowait' }),
        )
        await expect(other).rejects.toMatchObject({ code: 'ROWS_BUSY' })
      })
    },
  },
  {
    call: 'rows.updateVersioned',
    promise: 'Changes a row only if it has the version that was read.',
    async keep({ a, b, row }) {
      const set = async <Tx>(hf: Offered<Tx>, v: number): Promise<unknown> =>
        await of(hf.transaction)(
          async (tx) =>
            await of(hf.rows).updateVersioned(tx, table, row(), { version: 1, set: { v } }),
        )
      await set(a, 1)
      await expect(set(b, 2)).rejects.toMatchObject({ code: 'ROWS_VERSION_CONFLICT' })
    },
  },
  {
    call: 'rows.optimistic',
    promise: 'Runs again with what is there by then if the row was changed meanwhile.',
    async keep(scene) {
      const { a, b, row, run } = scene
      const id = row()
      const add = async <Tx>(hf: Offered<Tx>, tx: Tx, version: number): Promise<unknown> =>
        await of(hf.rows).updateVersioned(tx, table, row(), {
          version,
          set: { v: version },
        })
      await of(b.transaction)(async (tx) => await add(b, tx, 1))
      let attempts = 0
      await of(a.rows).optimistic(async (tx) => {
        attempts += 1
        const [seen] = await run(tx, `SELECT version FROM promised_row WHERE id = ${id}`)
        await add(a, tx, attempts === 1 ? 1 : Number(seen?.['version']))
      })
      expect([attempts, await valueOf(scene, id)]).toEqual([2, 2])
    },
  },
  {
    call: 'rows.withVersionCheck',
    promise: 'Long work without a lock is written only if its row is as it was read.',
    async keep(scene) {
      const { a, b, row } = scene
      const id = row()
      const seen: unknown[] = []
      await of(a.rows).withVersionCheck<{ v: number }, number, void>(table, row(), {
        work: async ({ v }) => {
          seen.push(Number(v))
          if (seen.length > 1) return Number(v)
          await of(b.transaction)(
            async (tx) =>
              await of(b.rows).updateVersioned(tx, table, id, {
                version: 1,
                set: { v: 7 },
              }),
          )
          return Number(v)
        },
        write: async () => undefined,
        attempts: 2,
      })
      expect(seen).toEqual([0, 7])
    },
  },
  {
    call: 'once',
    promise: 'One effect for a key, however often it is called; all get the same result.',
    async keep(scene) {
      const { a, b, name } = scene
      const work = scene.name()
      const together = barrier(4)
      const answers = await Promise.all(
        [a, b, a, b].map(async (hf, at) => {
          await together()
          return await of(hf.once)(
            name(),
            async (tx) => {
              await done(scene, tx, work)
              return at
            },
            patient,
          )
        }),
      )
      expect(await countOf(scene, work)).toBe(1)
      expect(new Set(answers.map(({ result }) => result)).size).toBe(1)
    },
  },
  {
    call: 'leases',
    promise: 'One holder at a time; tokens only grow; a lease that was lost writes nothing.',
    async keep(scene) {
      const { a, b, name } = scene
      const first = await of(a.leases).acquire(name())
      const meanwhile = await of(b.leases).tryAcquire(name())
      await meanwhile?.release()
      expect(meanwhile).toBeUndefined()
      await first.release()
      const second = await of(b.leases).acquire(name())
      expect(second.token).toBeGreaterThan(first.token)
      const writing = of(a.transaction)(async (tx) => await first.guard(tx))
      await expect(writing).rejects.toMatchObject({ code: 'LEASE_LOST' })
      await of(b.transaction)(async (tx) => await second.guard(tx))
      await second.release()
    },
  },
  {
    call: 'leader',
    promise: 'One of all candidates leads; the next one does when it stops.',
    async keep({ a, b, name }) {
      const stops = [new AbortController(), new AbortController()] as const
      const led: number[] = []
      const leads = [deferred(), deferred()] as const
      let atOnce = 0
      let most = 0
      const runs = [a, b].map(async (hf, at) => {
        const candidate = of(hf.leader)({ name: name(), ttl: '2 s', retryEvery: 20 })
        await candidate.run(
          async ({ signal }) => {
            led.push(at)
            atOnce += 1
            most = Math.max(most, atOnce)
            leads[at]?.resolve()
            if (!signal.aborted) await once(signal, 'abort')
            atOnce -= 1
          },
          { signal: (stops[at] as AbortController).signal },
        )
      })
      await Promise.race(leads.map(async ({ promise }) => await promise))
      const first = led[0] as 0 | 1
      const next = leads[first === 0 ? 1 : 0].promise
      // Many times as long as a candidate waits before it asks again.
      await Promise.race([next, pause(400)])
      stops[first].abort()
      await next
      for (const stop of stops) stop.abort()
      await Promise.all(runs)
      expect([led.length, most]).toEqual([2, 1])
    },
  },
  {
    call: 'schedule',
    promise: 'A tick runs once, however many processes ask for it at the same moment.',
    async keep(scene) {
      const { a, b, bench, name } = scene
      const work = scene.name()
      const declare = <Tx>(hf: Offered<Tx>, as: string) =>
        of(hf.schedule)({
          name: as,
          ...weekly,
          guarantee: 'transactional',
          handler: async (tx) => await done(scene as never, tx, work),
        })
      const both: ReturnType<typeof declare>[] = []
      // One after the other: on SQLite, a write by hand would stop the process in which the other one is to go on.
      for (const hf of [a, b]) {
        const as = name()
        await declare(hf, as).resume()
        await bench.sleepThrough(as)
        both.push(declare(hf, as))
      }
      const together = barrier(4)
      await Promise.all(
        [...both, ...both].map(async (each) => {
          await together()
          await each.fire()
        }),
      )
      expect(await countOf(scene, work)).toBe(1)
    },
  },
  {
    call: 'claims',
    promise: 'Two claims never have the same row; whoever has lost one ends nothing.',
    async keep({ a, b, bench, jobs }) {
      const over = <Tx>(hf: Offered<Tx>, name: string) =>
        of(hf.claims)<{ id: number }>({
          table: name,
          columns: { status: 'status' },
        } as never) as never as {
          claim(most: number): Promise<readonly { readonly row: { readonly id: number } }[]>
          complete(claim: unknown): Promise<{ readonly lost: readonly unknown[] }>
        }
      const [one, other] = [jobs(), jobs()]
      const together = barrier(2)
      const [mine, theirs] = await Promise.all(
        [over(a, one), over(b, other)].map(async (claims) => {
          await together()
          return await claims.claim(2)
        }),
      )
      const ids = [...(mine ?? []), ...(theirs ?? [])].map(({ row }) => Number(row.id))
      expect(ids.toSorted((x, y) => x - y)).toEqual([1, 2, 3, 4])
      await bench.look(`UPDATE ${one} SET claim_token = NULL, status = 'pending'`)
      const { lost } = await over(a, one).complete(mine?.[0])
      expect(lost).toHaveLength(1)
    },
  },
  {
    call: 'quota',
    promise: 'Never more than the limit, whoever asks at the same moment.',
    async keep({ a, b, name }) {
      const together = barrier(2)
      const verdicts = await Promise.all(
        [a, b].map(async (hf, at) => {
          await together()
          const limited = of(hf.quota)({ name: 'promised', limit: 10, per: 'lifetime' })
          return await limited.consume(name(), 6, { operationId: `${name()} ${at}` })
        }),
      )
      expect(verdicts.filter(({ ok }) => ok)).toHaveLength(1)
    },
  },
  {
    call: 'credits',
    promise: 'Nobody spends what is not there, and an operation is applied once.',
    async keep({ a, b, name }) {
      const wallet = <Tx>(hf: Offered<Tx>) => of(hf.credits)({ name: 'promised-wallet' })
      const owner = name()
      await wallet(a).grant(owner, 10, { operationId: `${owner} opening` })
      const operationId = `${owner} spent`
      const twice = await Promise.all(
        [a, b].map(async (hf) => await wallet(hf).spend(name(), 6, { operationId })),
      )
      expect(twice.filter(({ ok }) => ok)).toHaveLength(2)
      expect(twice.filter(({ replayed }) => replayed)).toHaveLength(1)
      const { ok } = await wallet(b).spend(owner, 6, { operationId: `${owner} more` })
      expect(ok).toBe(false)
    },
  },
  {
    call: 'stock',
    promise: 'Nothing is sold that is not there, and a webhook counts once.',
    async keep({ a, b, name }) {
      const shop = <Tx>(hf: Offered<Tx>) => of(hf.stock)({ name: 'promised-shop' })
      const sku = name()
      await shop(a).receive([{ sku, quantity: 5 }], { externalId: `${sku} in` })
      const together = barrier(2)
      const sold = await Promise.all(
        [a, b].map(async (hf, at) => {
          await together()
          const lines = [{ sku: name(), quantity: 3 }]
          return await shop(hf).issue(lines, { externalId: `${sku} out ${at}` })
        }),
      )
      expect(sold.filter(({ ok }) => ok)).toHaveLength(1)
    },
  },
  {
    call: 'work',
    promise: 'A job is there if and only if its transaction was committed, and one worker has it.',
    async keep(scene) {
      const { a, b, name } = scene
      const queue = name()
      const add = async (tx: unknown, month: number): Promise<unknown> =>
        await of(a.work)({ queue }).enqueue(tx as never, { payload: { month } })
      await of(a.transaction)(async (tx) => await add(tx, 1))
      const undone = of(a.transaction)(async (tx) => {
        await add(tx, 2)
        throw new Error('mine')
      })
      await expect(undone).rejects.toThrow('mine')
      const claimed = await Promise.all(
        [a, b].map(async (hf) => await of(hf.work)<{ month: number }>({ queue: name() }).claim(2)),
      )
      expect(claimed.flat().map(({ row }) => row.payload.month)).toEqual([1])
    },
  },
]
