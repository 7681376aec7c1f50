import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { createHoldfast, lockKey } from '../../../../src/sqlite.ts'
import { eachSqlite } from '../support/each-sqlite.ts'
import { value } from '../support/sqlite-clients.ts'

const program = fileURLToPath(new URL('../support/competitor.ts', import.meta.url))

interface Told {
  readonly ok: number
  readonly refused: number
  readonly longestMs: number
}

/** Processes that write to one file exclude each other. */
eachSqlite(
  ['CREATE TABLE counter (v INTEGER NOT NULL)', 'INSERT INTO counter VALUES (0)'],
  (place) => {
    let children: ChildProcess[] = []
    afterEach(() => {
      for (const child of children) child.kill('SIGKILL')
      children = []
    })

    const start = async (what: string, times = 0): Promise<ChildProcess> => {
      const child = fork(program, [place.client, place.file(), what, String(times)])
      children.push(child)
      expect(await once(child, 'message')).toEqual(['ready', undefined])
      return child
    }

    /** All of them begin when all are there. */
    const race = async (
      what: string,
      processes: number,
      times: number,
    ): Promise<readonly Told[]> => {
      const started = await Promise.all(
        Array.from({ length: processes }, async () => await start(what, times)),
      )
      const ends = started.map(async (child) => (await once(child, 'message'))[0] as Told)
      for (const child of started) child.send('go')
      return await Promise.all(ends)
    }

    test('no update is lost, and nobody starves', async () => {
      const told = await race('guard', 4, 40)
      expect(told.map(({ ok }) => ok)).toEqual([40, 40, 40, 40])
      expect(value(place.open(), 'SELECT v FROM counter')).toBe(160)
      for (const { longestMs } of told) expect(longestMs).toBeLessThan(10_000)
    })

    test('control: without a transaction updates are lost', async () => {
      await race('plain', 4, 40)
      expect(value(place.open(), 'SELECT v FROM counter')).toBeLessThan(160)
    })

    test('control: in a transaction as SQLite begins it, writers are refused', async () => {
      const told = await race('deferred', 4, 40)
      const refused = told.reduce((sum, each) => sum + each.refused, 0)
      expect(refused).toBeGreaterThan(0)
      expect(value(place.open(), 'SELECT v FROM counter')).toBe(160 - refused)
    })

    test('who waits in this process is not told to be the holder while another process is', async () => {
      const holder = await start('hold')
      holder.send('go')
      expect((await once(holder, 'message'))[0]).toBe('holding')
      const driver = place.driver()
      const hf = createHoldfast(driver)
      const waiting = hf.guard(lockKey('counter', 1), async () => 'in', { wait: '20 s' })
      // It has its turn in this process now, and asks for the file.
      await new Promise(setImmediate)
      const other = lockKey('counter', 2)
      expect(await hf.tryGuard(other, async () => 'in')).toEqual({ ok: false, blockers: [] })
      for (const key of [other, lockKey('counter', 1)])
        await expect(hf.guard(key, async () => 'in', { wait: 50 })).rejects.toMatchObject({
          code: 'LOCK_TIMEOUT',
          blockers: [],
        })
      const dead = once(holder, 'exit')
      holder.kill('SIGKILL')
      await dead
      expect(await waiting).toBe('in')
      // Control: who has the file in this process is told.
      const inside = Promise.withResolvers<void>()
      const out = Promise.withResolvers<void>()
      const writing = hf.guard(other, async () => {
        inside.resolve()
        await out.promise
      })
      await inside.promise
      expect(await hf.tryGuard(lockKey('counter', 1), async () => 'in')).toMatchObject({
        ok: false,
        blockers: [{ pid: process.pid, name: 'counter:2' }],
      })
      out.resolve()
      await writing
    })

    test('a holder that is killed frees it at once, and nothing of it is kept', async () => {
      const holder = await start('hold')
      holder.send('go')
      expect((await once(holder, 'message'))[0]).toBe('holding')
      const hf = createHoldfast(place.driver())
      const key = lockKey('counter', 1)
      // Of another process only the lock is seen, and not its name.
      expect(await hf.tryGuard(key, async () => 'in')).toEqual({ ok: false, blockers: [] })
      await expect(hf.guard(key, async () => 'in', { wait: 50 })).rejects.toMatchObject({
        code: 'LOCK_TIMEOUT',
        details: { names: ['counter:1'] },
        blockers: [],
      })
      let isIn = false
      const waiting = hf.guard(
        key,
        async (tx) => {
          isIn = true
          return value(tx, 'SELECT v FROM counter')
        },
        { wait: '20 s' },
      )
      await new Promise(setImmediate)
      expect(isIn).toBe(false)
      const dead = once(holder, 'exit')
      holder.kill('SIGKILL')
      await dead
      const began = performance.now()
      expect(await waiting).toBe(0)
      expect(performance.now() - began).toBeLessThan(1_000)
    })
  },
)
