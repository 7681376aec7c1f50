import { barrier, deferred } from '@holdfast/testkit'
import { describe, expect, test } from 'vitest'
import { isHoldfastError } from '../../../src/core/errors.ts'
import { lockKey } from '../../../src/core/locks/lock-key.ts'
import { createOnce } from '../../../src/entries/once.ts'
import { createRows, type Rows } from '../../../src/entries/rows.ts'
import { createTransactions } from '../../../src/tx/index.ts'
import { rejection, type Setting, waitingForLock } from './setting.ts'

/** Ways to end a transaction. */
const endings = [
  'COMMIT',
  'rollback',
  'COMMIT AND CHAIN',
  'ROLLBACK AND CHAIN',
  '/* by a helper */ end;',
  'abort',
]

/** T1: a body is held to the transaction it was given, and what its caller is told is so. */
export function bodyEndings<Tx>(at: Setting<Tx>): void {
  let bodies = 0
  const fresh = (): string => {
    bodies += 1
    return `ending-${bodies}`
  }
  const insert = (id: string): string => `INSERT INTO account VALUES ('${id}', 1)`
  const isFree = async (id: string): Promise<boolean> => {
    const { lock } = lockKey('ending', id)
    const { rows } = await at.observer.query<{ free: boolean }>(
      'SELECT pg_try_advisory_xact_lock($1::int8) AS free',
      [String(lock.id)],
    )
    return rows[0]?.free === true
  }

  describe.each(['guard', 'tx.run'] as const)('%s', (call) => {
    const run = async <T>(id: string, body: (tx: Tx) => Promise<T>): Promise<T> =>
      call === 'guard'
        ? await at.locks.guard(lockKey('ending', id), body)
        : await createTransactions(at.harness.driver).run(body)

    test.each(endings)('T1: %s in the body is refused, and nothing is saved', async (ending) => {
      const id = fresh()
      let heard: string | undefined
      let free: boolean | undefined
      const error = await rejection(
        run(id, async (tx) => {
          await at.harness.run(tx, insert(id))
          heard = codeIn(await rejection(at.harness.run(tx, ending)))
          free = await isFree(id)
          await at.harness.run(tx, insert(`${id}-after`))
          return 'saved'
        }),
      )
      expect([heard, error.code]).toEqual(['TX_ENDED_INSIDE', 'TX_ENDED_INSIDE'])
      expect(free).toBe(call !== 'guard')
      expect(await at.balance(id)).toBeUndefined()
      expect(await at.balance(`${id}-after`)).toBeUndefined()
    })

    test('T1: BEGIN in the body is refused, and nothing is saved', async () => {
      const id = fresh()
      const error = await rejection(
        run(id, async (tx) => {
          await at.harness.run(tx, insert(id))
          await at.harness.run(tx, 'BEGIN').catch(() => undefined)
        }),
      )
      expect(error.code).toBe('TX_NESTED')
      expect(await at.balance(id)).toBeUndefined()
    })

    test('T1: the error of the body comes out, whatever it tried before', async () => {
      const id = fresh()
      const own = new Error('mine')
      const error = await rejection(
        run(id, async (tx) => {
          await at.harness.run(tx, insert(id))
          await at.harness.run(tx, 'COMMIT').catch(() => undefined)
          throw own
        }),
      )
      expect(error).toBe(own)
      expect(await at.balance(id)).toBeUndefined()
    })

    test('T1: a statement that was not awaited fails the whole', async () => {
      const id = fresh()
      const error = await rejection(
        run(id, async (tx) => {
          await at.harness.run(tx, insert(id))
          void at.harness.run(tx, insert(`${id}-late`)).catch(() => undefined)
        }),
      )
      expect(error.code).toBe('TX_UNAWAITED')
      expect(await at.balance(id)).toBeUndefined()
      expect(await at.balance(`${id}-late`)).toBeUndefined()
    })

    test('T1: statements that are returned unsent fail the whole', async (context) => {
      const { unsent } = at.harness
      if (unsent === undefined) return context.skip('every call sends')
      const ways: readonly ((one: unknown, other: unknown) => unknown)[] = [
        (one, other) => [one, other],
        (one, other) => ({ one, more: other }),
      ]
      for (const way of ways) {
        const id = fresh()
        const error = await rejection(
          run(id, async (tx) => {
            await at.harness.run(tx, insert(id))
            return way(unsent(tx, insert(`${id}-1`)), unsent(tx, insert(`${id}-2`)))
          }),
        )
        expect(error.code).toBe('TX_UNAWAITED')
        expect(await at.balance(id)).toBeUndefined()
      }
      // What was begun, and what was awaited, is nobody's concern.
      const id = fresh()
      const [later, rows] = await run(id, async (tx) => {
        const both = [unsent(tx, insert(id)), unsent(tx, insert(`${id}-2`))]
        return [Promise.resolve('later'), await Promise.all(both)]
      })
      expect([await later, (rows as unknown[]).length]).toEqual(['later', 2])
      expect([await at.balance(id), await at.balance(`${id}-2`)]).toEqual([1, 1])
    })

    test('T1: nor is a statement of ours left under way that the body did not see', async () => {
      const id = fresh()
      const rival = await at.rival()
      await rival.query('SELECT pg_advisory_xact_lock($1)', [
        String(lockKey('ending', `${id}-busy`).lock.id),
      ])
      const busy = lockKey('ending', `${id}-busy`)
      await run(id, async (tx) => await at.locks.tryAcquire(tx, busy))
      const error = await rejection(
        run(id, async (tx) => {
          await at.harness.run(tx, 'SELECT 1 / 0').catch(() => undefined)
          await at.locks.acquire(tx, lockKey('ending', `${id}-other`)).catch(() => undefined)
        }),
      )
      expect(error.code).not.toBe('TX_UNAWAITED')
      await rival.query('ROLLBACK')
    })

    test('T1: the handle is of no use while COMMIT is under way, nor afterwards', async () => {
      const id = fresh()
      const number = 1_000 + bodies
      const rival = await at.rival()
      await rival.query('SELECT pg_advisory_xact_lock($1)', [number])
      let kept: Tx | undefined
      const running = run(id, async (tx) => {
        kept = tx
        await at.harness.run(tx, insert(id))
        await at.harness.run(tx, `INSERT INTO slow VALUES (${number})`)
      })
      await waitingForLock(at.observer)
      const late = await rejection(at.harness.run(kept as Tx, insert(`${id}-late`)))
      const { endedWords } = at.harness.facts
      if (endedWords?.test(late.message) !== true) expect(codeIn(late)).toBe('TX_HANDLE_ENDED')
      await rival.query('COMMIT')
      await running
      await rejection(at.harness.run(kept as Tx, insert(`${id}-late`)))
      await at.observer.query('DELETE FROM slow')
      expect(await at.balance(id)).toBe(1)
      expect(await at.balance(`${id}-late`)).toBeUndefined()
    })

    test('T1: calls of Holdfast with a handle that is over say so', async () => {
      const id = fresh()
      const kept: Tx[] = []
      await run(id, async (tx) => void kept.push(tx))
      await rejection(
        run(id, async (tx) => {
          kept.push(tx)
          throw new Error('mine')
        }),
      )
      const { driver } = at.harness
      for (const tx of kept) {
        const late = [
          await rejection(at.locks.acquire(tx, lockKey('ending', id))),
          await rejection((createRows(driver) as Rows<unknown>).lock(tx, 'account', [id])),
          await rejection(createOnce(driver)(tx, id, async () => 1)),
        ]
        for (const { code } of late) expect(code).toMatch(/^TX_HANDLE_ENDED$|_OUTSIDE_TRANSACTION$/)
      }
    })

    test('T1: what the body lets out of its client is still our error', async () => {
      const id = fresh()
      const error = await rejection(
        run(id, async (tx) => {
          await at.harness.run(tx, 'COMMIT')
        }),
      )
      expect(error.code).toBe('TX_ENDED_INSIDE')
    })

    test('T1: a savepoint that outlives its body undoes nothing of whoever comes next', async () => {
      const id = fresh()
      const [opened, over] = [deferred(), deferred()]
      let late: Promise<unknown> | undefined
      await rejection(
        run(`${id}-first`, async (tx) => {
          late = rejection(
            at.harness.savepoint(tx, async (inner) => {
              opened.resolve()
              await over.promise
              await at.harness.run(inner, insert(`${id}-late`))
            }),
          )
          await opened.promise
          throw new Error('the other step failed')
        }),
      )
      // One of them has the connection on which the late one was opened, and a savepoint of the same name.
      const next = Array.from({ length: 6 }, (_, at) => `${id}-next-${at}`)
      const all = barrier(next.length)
      await Promise.all(
        next.map((each) =>
          run(each, async (tx) => {
            await at.harness.savepoint(tx, async (inner) => {
              await at.harness.run(inner, insert(each))
            })
            await all()
            over.resolve()
            await late
            await at.harness.savepoint(tx, async (inner) => {
              await at.harness.run(inner, insert(`${each}-too`))
            })
          }),
        ),
      )
      expect(await at.balance(`${id}-late`)).toBeUndefined()
      for (const each of next) {
        expect([await at.balance(each), await at.balance(`${each}-too`)]).toEqual([1, 1])
      }
    })

    test('T1: a savepoint that is open when its body returns is not said to be done', async () => {
      const id = fresh()
      const [opened, over] = [deferred(), deferred()]
      let late: Promise<unknown> | undefined
      const told = await run(id, async (tx) => {
        late = at.harness
          .savepoint(tx, async (inner) => {
            await at.harness.run(inner, insert(id))
            opened.resolve()
            await over.promise
            throw new Error('undo')
          })
          .catch(() => undefined)
        await opened.promise
      }).then(
        () => 'done',
        (error: unknown) => codeIn(error as Error),
      )
      over.resolve()
      await late
      // By hand nobody but the body knows that it is open.
      const { isCounted } = at.harness.facts.savepoints
      expect(isCounted ? ['TX_UNAWAITED', 'TX_NESTED'] : ['done']).toContain(told)
      expect(await at.balance(id)).toBe(isCounted ? undefined : 1)
    })

    test('savepoints of the body are its own affair', async () => {
      const id = fresh()
      await run(id, async (tx) => {
        await at.harness.run(tx, insert(id))
        await at.harness.run(tx, 'SAVEPOINT a')
        await at.harness.run(tx, insert(`${id}-undone`))
        await at.harness.run(tx, 'ROLLBACK TO SAVEPOINT a')
        await at.harness.run(tx, 'RELEASE SAVEPOINT a')
        await at.harness.savepoint(tx, async (inner) => {
          await at.harness.run(inner, insert(`${id}-kept`))
        })
      })
      expect(await at.balance(id)).toBe(1)
      expect(await at.balance(`${id}-undone`)).toBeUndefined()
      expect(await at.balance(`${id}-kept`)).toBe(1)
    })
  })

  test('control: the client alone says yes to a body that has rolled back or is told nothing', async () => {
    const id = fresh()
    const outcome = await at.harness
      .own(async (tx) => {
        await at.harness.run(tx, insert(id))
        await at.harness.run(tx, 'ROLLBACK')
      })
      .then(
        () => 'resolved',
        () => 'rejected',
      )
    expect([outcome, await at.balance(id)]).toEqual(['resolved', undefined])
  })
}

/** The code of our error, however a client has wrapped it. */
function codeIn(error: Error & { code?: string }): string | undefined {
  const { cause, original } = error as { cause?: { code?: string }; original?: { code?: string } }
  return isHoldfastError(error) ? error.code : (cause?.code ?? original?.code ?? error.code)
}
