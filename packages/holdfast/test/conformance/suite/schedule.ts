import { barrier } from '@holdfast/testkit'
import { expect, test } from 'vitest'
import { createHoldfast, type Holdfast } from '../../../src/index.ts'
import { migrate } from '../../../src/schema/index.ts'
import {
  expireLeases,
  freshName,
  sleepThrough,
  weekly,
} from '../../integration/schedule/schedule-room.ts'
import type { Setting } from './setting.ts'

/** Ticks under each guarantee; the transactional one gets the client's own handle. */
export function schedule<Tx>(at: Setting<Tx>): void {
  const create = async (): Promise<Holdfast<Tx>> => {
    await migrate(at.harness.driver)
    return createHoldfast(at.harness.driver)
  }

  test('transactional: what the handler writes and the end of the tick commit together, once', async () => {
    const hf = await create()
    const [name, account] = [freshName(), await at.account(0)]
    await sleepThrough(at.observer, name, 1)
    const declared = hf.schedule({
      name,
      ...weekly,
      guarantee: 'transactional',
      retryAfter: '1 min',
      handler: async (tx, { attempt }) => {
        await at.harness.run(tx, `UPDATE account SET balance = balance + 1 WHERE id = '${account}'`)
        if (attempt === 1) throw new Error('not yet')
      },
    })
    expect(await declared.fire()).toMatchObject([{ outcome: 'waiting', attempt: 1 }])
    expect(await at.balance(account)).toBe(0)
    await expireLeases(at.observer, name)
    const together = barrier(3)
    const outcomes = await Promise.all(
      Array.from({ length: 3 }, async () => {
        await together()
        return await declared.fire()
      }),
    )
    expect(outcomes.flat().filter(({ outcome }) => outcome === 'done')).toMatchObject([
      { attempt: 2 },
    ])
    expect(await at.balance(account)).toBe(1)
  })

  test.each(['at-most-once', 'at-least-once'] as const)(
    '%s: one of many runs it',
    async (guarantee) => {
      const hf = await create()
      const name = freshName()
      await sleepThrough(at.observer, name, 2)
      const ran: Date[] = []
      const declared = hf.schedule({
        name,
        ...weekly,
        guarantee,
        missed: { all: 2 },
        handler: (tick) => ran.push(tick.at),
      })
      await Promise.all(Array.from({ length: 3 }, () => declared.fire()))
      expect(new Set(ran.map(Number)).size).toBe(2)
      expect(ran).toHaveLength(2)
      expect(await declared.history()).toMatchObject([
        { state: 'done', attempts: 1 },
        { state: 'done', attempts: 1 },
      ])
    },
  )

  test('pause, resume, by hand', async () => {
    const hf = await create()
    const name = freshName()
    await sleepThrough(at.observer, name, 1)
    const ran: boolean[] = []
    const declared = hf.schedule({
      name,
      ...weekly,
      guarantee: 'at-least-once',
      handler: ({ manual }) => ran.push(manual),
    })
    expect(await declared.pause()).toBe(true)
    expect(await declared.fire()).toEqual([])
    expect(await declared.runNow()).toMatchObject({ outcome: 'done', manual: true })
    expect(await declared.resume()).toBe(true)
    expect(ran).toEqual([true])
  })
}
