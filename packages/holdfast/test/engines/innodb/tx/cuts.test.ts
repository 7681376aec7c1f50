import { beforeAll, describe, expect, test } from 'vitest'
import type { InnodbDriver } from '../../../../src/engines/innodb/driver.ts'
import { commitText, commitWhole } from '../../../../src/engines/innodb/tx/transaction.ts'
import { createHoldfast, isHoldfastError, lockKey, migrate } from '../../../../src/mysql.ts'
import type { InnodbSession } from '../../../server-behaviour/innodb/support/innodb-session.ts'
import { cuts, cuttingWire, type CuttingWire } from '../support/cutting-wire.ts'
import { eachInnodb } from '../support/each-innodb.ts'
import { type Handle, openClient } from '../support/innodb-clients.ts'

/** The wire is cut at each command that a guard sends, before it arrives and before its answer does. */
eachInnodb((place) => {
  beforeAll(async () => {
    await using pool = place.pool()
    await migrate(pool.driver)
    await using session = await place.session()
    await session.rows('CREATE TABLE log (run INT NOT NULL, attempt INT NOT NULL) ENGINE=InnoDB')
  })

  interface Seen {
    readonly command: string
    readonly cut: string
    readonly saved: number
    readonly bodies: number
    /** The code of what it said, or `resolved`. */
    readonly told: string
  }

  interface CutAt {
    readonly at: number
    readonly cut: (typeof cuts)[number]
    readonly retry: boolean
    /** Guards before it on the same connection: the second one has its COMMIT prepared. */
    readonly before: number
  }

  let run = 0
  const guarded = async (
    wire: CuttingWire,
    session: InnodbSession,
    driver: InnodbDriver<Handle>,
    { at, cut, retry, before }: CutAt,
  ): Promise<Seen> => {
    const hf = createHoldfast(driver)
    const key = lockKey('cut', 1)
    run += 1
    let bodies = 0
    for (let guards = 0; guards < before; guards += 1) await hf.guard(key, async () => undefined)
    wire.arm(at, cut)
    const told = await hf
      .guard(
        key,
        async (tx) => {
          bodies += 1
          await tx.query(`INSERT INTO log VALUES (${run}, ${bodies})`)
        },
        { retry: retry ? { attempts: 5, budgetMs: 10_000 } : false },
      )
      .then(
        () => 'resolved',
        (error: unknown) => (isHoldfastError(error) ? error.code : String(error)),
      )
    const command = wire.commands[at] ?? 'none'
    wire.disarm()
    const [row] = await session.rows(`SELECT COUNT(*) AS n FROM log WHERE run = ${run}`)
    return { command, cut, told, bodies, saved: Number(row?.['n']) }
  }

  /** All of them, until guards have ended before their turn to be cut came: on a new connection one sends more. */
  const all = async (
    retry: boolean,
    driverOf: (client: ReturnType<typeof openClient>) => InnodbDriver<Handle> = ({ driver }) =>
      driver,
  ): Promise<readonly Seen[]> => {
    await using session = await place.session()
    await using wire = await cuttingWire(place.url())
    await using client = openClient(place.client, wire.url)
    const seen: Seen[] = []
    const driver = driverOf(client)
    // What is to be known of the server and its table is known.
    await createHoldfast(driver).guard(lockKey('cut', 1), async () => undefined)
    for (const cut of cuts) {
      for (const before of retry ? [1] : [0, 1]) {
        for (let [at, uncut] = [0, 0]; at < 40 && uncut < 3; at += 1) {
          const outcome = await guarded(wire, session, driver, { at, cut, retry, before })
          if (outcome.command === 'none') uncut += 1
          else seen.push(outcome)
        }
      }
    }
    return seen
  }

  /** With the look whether it is still the transaction that was begun, on MariaDB. */
  const isCommit = ({ command }: Seen): boolean =>
    [commitText, commitWhole, `execute ${commitWhole}`].includes(command)

  /** What was said that is not so. */
  const lies = (seen: readonly Seen[]): readonly Seen[] =>
    seen.filter((outcome) => {
      const { told, saved, cut } = outcome
      if (told === 'resolved') return saved !== 1 || isCommit(outcome)
      if (told === 'COMMIT_UNKNOWN')
        return !isCommit(outcome) || saved !== (cut === 'unheard' ? 1 : 0)
      return saved !== 0 || isCommit(outcome)
    })

  describe('one guard', () => {
    test('is told unknown exactly when COMMIT was under way, and else what is so', async () => {
      const seen = await all(false)
      expect(lies(seen)).toEqual([])
      // As a text, and prepared.
      const commits = seen.filter(isCommit).map(({ cut, command }) => cut + command)
      expect(new Set(commits).size).toBe(cuts.length * (place.server.startsWith('mariadb') ? 2 : 1))
      // Something is cut before it as well.
      expect(seen.length).toBeGreaterThan(4)
    })

    test('that is run again is saved once, and is not run again after COMMIT', async () => {
      const seen = await all(true)
      expect(lies(seen)).toEqual([])
      expect(seen.filter((each) => isCommit(each) && each.bodies !== 1)).toEqual([])
      // Cut in the body it has run again, and cut before it, it has run.
      expect(seen.filter(({ bodies }) => bodies > 1).length).toBeGreaterThan(1)
      expect(seen.filter(({ told }) => told === 'resolved').length).toBeGreaterThan(3)
    })

    test('control: a COMMIT that is believed not to have arrived is saved twice', async () => {
      const weak = (handle: Handle): Handle =>
        new Proxy(handle, {
          get(target, property) {
            const value: unknown = Reflect.get(target, property)
            if (typeof value !== 'function') return value
            // So that COMMIT is always sent as a text.
            if (property === 'prepare') return async () => await Promise.reject(new Error('no'))
            if (property !== 'query') return value.bind(target) as unknown
            return async (options: { readonly sql: string }) => {
              const answer = target.query(options as never)
              if (![commitText, commitWhole].includes(options.sql)) return await answer
              return await answer.catch(() => {
                throw new Error("Can't add new command when connection is in closed state")
              })
            }
          },
        })
      const seen = await all(true, (client) => client.weakened(weak))
      expect(lies(seen)).toContainEqual(expect.objectContaining({ cut: 'unheard', saved: 2 }))
    })
  })
})
