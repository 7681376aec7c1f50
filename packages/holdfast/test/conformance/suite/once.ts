import { barrier } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import { createHoldfast, type Holdfast } from '../../../src/index.ts'
import { migrate } from '../../../src/schema/index.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import { rejection, type Setting } from './setting.ts'

/** Work that is done once, in a transaction of its own and in the caller's, by the client's own handle. */
export function once<Tx>(at: Setting<Tx>): void {
  const create = async (): Promise<Holdfast<Tx>> => {
    await migrate(at.harness.driver)
    return createHoldfast(at.harness.driver)
  }
  const add =
    (account: string) =>
    async (tx: Tx): Promise<{ done: string }> => {
      await at.harness.run(tx, `UPDATE account SET balance = balance + 1 WHERE id = '${account}'`)
      return { done: account }
    }

  test('alone: the body runs once, and its result is what everybody gets', async () => {
    const hf = await create()
    const [key, account] = [fresh(), await at.account(0)]
    const together = barrier(4)
    const answers = await Promise.all(
      Array.from({ length: 4 }, async () => {
        await together()
        return await hf.once(key, add(account))
      }),
    )
    expect(answers.map(({ result }) => result)).toEqual(
      Array.from({ length: 4 }, () => ({ done: account })),
    )
    expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1)
    expect(await at.balance(account)).toBe(1)
  })

  test('alone: what failed and was passed over is told, and the key is as new', async () => {
    const hf = await create()
    const [key, account] = [fresh(), await at.account(0)]
    const swallowing = hf.once(key, async (tx) => {
      await at.harness.run(tx, 'SELECT 1 / 0').catch(() => undefined)
    })
    expect((await rejection(swallowing)).code).toBe('TX_ROLLED_BACK')
    const { unsent } = at.harness
    if (unsent !== undefined) {
      const update = `UPDATE account SET balance = 7 WHERE id = '${account}'`
      const lazy = hf.once(key, async (tx) => [unsent(tx, update)])
      expect((await rejection(lazy)).code).toBe('TX_UNAWAITED')
    }
    expect(await hf.once(key, add(account))).toMatchObject({ replayed: false })
    expect(await at.balance(account)).toBe(1)
  })

  describe("in the caller's transaction", () => {
    test('work and memory commit together', async () => {
      const hf = await create()
      const [key, account] = [fresh(), await at.account(0)]
      for (const replayed of [false, true]) {
        const answer = await at.harness.own(async (tx) => await hf.once(tx, key, add(account)))
        expect(answer).toEqual({ ok: true, result: { done: account }, replayed })
      }
      expect(await at.balance(account)).toBe(1)
    })

    test('and roll back together', async () => {
      const hf = await create()
      const [key, account] = [fresh(), await at.account(0)]
      const mine = new Error('mine')
      const error = await rejection(
        at.harness.own(async (tx) => {
          await hf.once(tx, key, add(account))
          throw mine
        }),
      )
      expect(error).toBe(mine)
      expect(await at.balance(account)).toBe(0)
      expect(await hf.once(key, add(account))).toMatchObject({ replayed: false })
    })

    test('a body that fails is undone, and the transaction goes on', async () => {
      const hf = await create()
      const [key, account, other] = [fresh(), await at.account(0), await at.account(0)]
      await at.harness.own(async (tx) => {
        await rejection(
          hf.once(tx, key, async (inner) => {
            await add(account)(inner)
            await at.harness.run(inner, 'SELECT 1 / 0')
          }),
        )
        await add(other)(tx)
      })
      expect([await at.balance(account), await at.balance(other)]).toEqual([0, 1])
      expect(await hf.once(key, add(account))).toMatchObject({ replayed: false })
    })

    test('a handle that was never in one is refused', async () => {
      const hf = await create()
      for (const withHandle of Object.values(at.harness.lookAlikes)) {
        await withHandle(async (handle) => {
          const error = await rejection(hf.once(handle, fresh(), async () => 'done'))
          expect(error.code).toBe('ONCE_OUTSIDE_TRANSACTION')
        })
      }
    })
  })

  test('a duplicate that does not wait hears that it is in progress; another payload is refused', async () => {
    const hf = await create()
    const key = fresh()
    await hf.once(
      key,
      async () => {
        const other = createHoldfast((await at.another()).driver)
        expect(await other.once(key, async () => 'never', { wait: false })).toEqual({
          ok: false,
          reason: 'in-progress',
        })
      },
      { payload: 'a' },
    )
    expect(await hf.once(key, async () => 'never', { payload: 'b' })).toEqual({
      ok: false,
      reason: 'mismatch',
    })
  })
}
