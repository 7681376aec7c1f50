import { appendFileSync } from 'node:fs'
import { beforeEach, describe, expect, test } from 'vitest'
import { isHoldfastError } from '../../src/core/errors.ts'
import { fresh } from '../support/ledger-fixture.ts'
import type { Bench } from './bench.ts'
import { matrix } from './matrix.ts'
import { NotOffered, type Promised, promises, type Scene } from './promises.ts'

type Outcome = 'yes' | 'no'

/** What is told about a call that an engine, or a client of it, does not offer. */
const refusals = ['ENGINE_NOT_OFFERED', 'DRIVER_HANDLE_INVALID'] as const

/** Where the outcomes are to be written instead of compared: `npm run docs:matrix`. */
const record = process.env['HOLDFAST_PROMISES']

async function outcomeOf<Tx>(promised: Promised, scene: Scene<Tx>): Promise<Outcome> {
  try {
    await promised.keep(scene)
    return 'yes'
  } catch (error) {
    if (error instanceof NotOffered || isHoldfastError(error, ...refusals)) return 'no'
    throw error
  }
}

/**
 * Every promise, tried with one client; and that it is no promise where the two are not after the same thing. `coarse` are
 * calls that exclude more than their name says.
 */
export function keepsPromises<Tx>(
  engine: string,
  client: string,
  bench: () => Bench<Tx>,
  coarse: readonly string[] = [],
): void {
  describe('what is promised', () => {
    beforeEach(async () => {
      await bench().look('UPDATE promised_row SET v = 0, version = 1')
      for (const each of ['a', 'b'])
        await bench().look(
          `UPDATE promised_job_${each} SET status = 'pending', claim_token = NULL, lease_until = NULL`,
        )
    })
    const sceneOf = async (isControl: boolean): Promise<Scene<Tx>> => {
      const [a, b] = [await bench().start(), await bench().start()]
      const name = fresh()
      let asked = 0
      const next = (): number => (isControl ? (asked += 1) : 1)
      return {
        a,
        b,
        bench: bench(),
        name: () => (isControl ? `${name} ${next()}` : name),
        row: () => next(),
        jobs: () => `promised_job_${next() % 2 === 0 ? 'b' : 'a'}`,
        run: async (tx, text) =>
          isControl ? await bench().look(text) : await bench().run(tx, text),
      }
    }

    test.each(promises)('$call: $promise', async (promised) => {
      const outcome = await outcomeOf(promised, await sceneOf(false))
      if (record !== undefined)
        appendFileSync(record, `${JSON.stringify([engine, client, promised.call, outcome])}\n`)
      const said = record === undefined ? matrix.saidOf(promised.call, engine, client) : outcome
      expect(outcome).toBe(said)
    })

    if (record !== undefined) return
    const offered = promises.filter(
      ({ call }) => matrix.saidOf(call, engine, client) === 'yes' && !coarse.includes(call),
    )
    test.each(offered)(
      'control: $call, by two who are after different things',
      async (promised) => {
        await expect(promised.keep(await sceneOf(true))).rejects.toBeInstanceOf(Error)
      },
    )
  })
}
