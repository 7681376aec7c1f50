import fc from 'fast-check'
import type pg from 'pg'
import { describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createKernel } from '../../../src/ledger/kernel.ts'
import { migrateFiles } from '../../../src/schema/migrate.ts'
import { anyCommand, keys, ratedKey, termsOf } from '../../support/ledger-arbitrary.ts'
import type { Answer, Command } from '../../support/ledger-command.ts'
import { ledgerFixture } from '../../support/ledger-fixture.ts'
import { LedgerModel } from '../../support/ledger-model.ts'
import { histories, rounds as roundsThen } from '../../support/ledger-regressions.ts'
import { inOrder, LedgerPlayer } from '../../support/ledger-player.ts'
import { weakened } from '../../support/weakened-files.ts'

const fixture = ledgerFixture()
const seed = Number(process.env['HOLDFAST_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
const settings = { seed, numRuns: Number(process.env['HOLDFAST_RUNS'] ?? 60) }
const newModel = (): LedgerModel => new LedgerModel({ termsOf })

const expected = (command: Command, model: LedgerModel): Answer =>
  inOrder(command, model.call([command])[0] as Answer)

const isDue = (command: Command): boolean => command.act === 'move' && command.due

let touches = 100

/** A while passes; what is due is booked by the sweeper, or by whoever touches the account next. */
async function letExpire(
  player: LedgerPlayer,
  model: LedgerModel,
  client?: pg.PoolClient,
): Promise<void> {
  await player.passAWhile(client ?? fixture.observer)
  model.passAWhile()
  touches += 1
  if (touches % 2 === 0) {
    await player.sweep(client ?? fixture.observer)
    return
  }
  for (const key of keys) {
    touches += 2
    const kind = key === ratedKey ? 'debit' : 'credit'
    const lines = [{ kind, key, amount: 1 }] as const
    const touch = { act: 'move', id: touches, lines, allowance: 5, due: false, note: 0 } as const
    expect(await player.play(touch, client)).toEqual(expected(touch, model))
  }
}

function modelled(model: LedgerModel, commands: readonly Command[]): Answer[] {
  const answers = model.call([...commands])
  return commands.map((command, at) => inOrder(command, answers[at] as Answer))
}

/** What the combiner makes of commands that arrive at once: an id that is in a call waits for the next. */
function callsOf(commands: readonly Command[]): Command[][] {
  const calls: Command[][] = []
  let waiting = [...commands]
  while (waiting.length > 0) {
    const ids = new Set<number>()
    const call = waiting.filter((command) => {
      if (!('id' in command)) return true
      const isFirst = !ids.has(command.id)
      ids.add(command.id)
      return isFirst
    })
    calls.push(call)
    waiting = waiting.filter((command) => !call.includes(command))
  }
  return calls
}

/**
 * A refusal without a lock is judged by the balances before the call, so of refusals only the reason
 * is that of the order of arrival.
 */
function decision(answer: Answer): Partial<Answer> {
  const { lines: _, ...rest } = answer
  return answer.ok ? answer : rest
}

const history = fc.array(anyCommand, { maxLength: 40, size: 'max' })

describe(`histories of seed ${seed}`, () => {
  test('one after the other: every answer and every movement is that of the model', async () => {
    await fc.assert(
      fc.asyncProperty(history, async (commands) => {
        const player = new LedgerPlayer(createKernel(fromPg(fixture.pool)), { termsOf })
        const model = newModel()
        for (const command of commands) {
          expect(await player.play(command)).toEqual(expected(command, model))
          if (isDue(command)) await letExpire(player, model)
        }
        expect(await player.movements(fixture.observer)).toEqual(model.movements)
      }),
      { ...settings, examples: histories.map((commands) => [commands]) },
    )
  })

  test("in one transaction of the caller's: the same, and none of it if that rolls back", async () => {
    await fc.assert(
      fc.asyncProperty(history, fc.boolean(), async (commands, commits) => {
        const player = new LedgerPlayer(createKernel(fromPg(fixture.pool)), { termsOf })
        const model = newModel()
        const client = await fixture.pool.connect()
        await client.query('BEGIN')
        for (const command of commands) {
          expect(await player.play(command, client)).toEqual(expected(command, model))
          if (isDue(command)) await letExpire(player, model, client)
        }
        await client.query(commits ? 'COMMIT' : 'ROLLBACK')
        client.release()
        const movements = await player.movements(fixture.observer)
        expect(movements).toEqual(commits ? model.movements : new Map())
      }),
      { ...settings, examples: histories.map((commands) => [commands, true]) },
    )
  })

  test('many in one call: the answers are those of the model, in their order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(history, { maxLength: 4 }), async (rounds) => {
        const driver = fromPg(fixture.pool)
        const player = new LedgerPlayer(createKernel(driver), { termsOf })
        const model = newModel()
        for (const [round, commands] of rounds.entries()) {
          for (const call of callsOf(commands)) {
            const answers = await player.playTogether(driver.alone, call)
            expect(answers.map(decision)).toEqual(modelled(model, call).map(decision))
          }
          if (round % 2 === 1) await letExpire(player, model)
        }
        expect(await player.movements(fixture.observer)).toEqual(model.movements)
      }),
      { ...settings, examples: roundsThen.map((rounds) => [rounds]) },
    )
  })

  test('many plain ones as one set: what is done is what the model does, and the rest is left', async () => {
    let [done, left] = [0, 0]
    await fc.assert(
      fc.asyncProperty(fc.array(history, { maxLength: 4 }), async (rounds) => {
        const driver = fromPg(fixture.pool)
        const player = new LedgerPlayer(createKernel(driver), { termsOf })
        const model = newModel()
        for (const [round, commands] of rounds.entries()) {
          for (const call of callsOf(commands)) {
            const answers = await player.playPlain(driver.alone, call)
            const isDone = (_: unknown, at: number): boolean => answers[at] !== undefined
            const first = call.filter(isDone)
            expect(answers.filter(isDone)).toEqual(modelled(model, first))
            const then = call.filter((_, at) => answers[at] === undefined)
            done += first.length
            left += then.length
            if (then.length === 0) continue
            const rest = await player.playTogether(driver.alone, then)
            expect(rest.map(decision)).toEqual(modelled(model, then).map(decision))
          }
          if (round % 2 === 1) await letExpire(player, model)
        }
        expect(await player.movements(fixture.observer)).toEqual(model.movements)
      }),
      // Few of them are done as a set, since most commands are no plain ones: more runs than elsewhere.
      {
        ...settings,
        numRuns: 2 * settings.numRuns,
        examples: roundsThen.map((rounds) => [rounds]),
      },
    )
    expect(Math.min(done, left)).toBeGreaterThan(settings.numRuns / 2)
  })

  test('control: plain ones without the look at the balance are found out', async () => {
    const schema = 'unguarded'
    await migrateFiles(
      fromPg(fixture.observer),
      weakened('apply_plain', />= l\.debits \+ l\.holds/, '>= -largest'),
      { schema },
    )
    const outcome = await fc.check(
      fc.asyncProperty(history, async (commands) => {
        const driver = fromPg(fixture.pool)
        const player = new LedgerPlayer(createKernel(driver, { schema }), { schema, termsOf })
        const model = newModel()
        for (const call of callsOf(commands)) {
          const answers = await player.playPlain(driver.alone, call)
          const then = call.filter((_, at) => answers[at] === undefined)
          const first = call.filter((_, at) => answers[at] !== undefined)
          expect(answers.filter((answer) => answer !== undefined)).toEqual(modelled(model, first))
          if (then.length > 0) await player.playTogether(driver.alone, then)
          modelled(model, then)
        }
      }),
      { ...settings, numRuns: 300 },
    )
    expect(outcome.failed).toBe(true)
  })

  test.each([
    ['forgets what was given back', 'forgetful', 'apply', /o\.returned \+ share/, 'o.returned'],
    [
      'saves up more than the burst of a rate',
      'saving',
      'apply',
      /debit := greatest\(-flow, 0\)/,
      'debit := 0',
    ],
    [
      'never fills a rate up',
      'empty',
      'internal/flows_in',
      /\) 1000000 OPERATOR\(pg_catalog\.\/\) every_us/,
      ') 0',
    ],
  ])('control: a ledger that %s is found out', async (_, schema, file, protection, instead) => {
    await migrateFiles(fromPg(fixture.observer), weakened(file, protection, instead), { schema })
    const outcome = await fc.check(
      fc.asyncProperty(history, async (commands) => {
        const player = new LedgerPlayer(createKernel(fromPg(fixture.pool), { schema }), {
          schema,
          termsOf,
        })
        const model = newModel()
        for (const command of commands) {
          expect(await player.play(command)).toEqual(expected(command, model))
          if (isDue(command)) await letExpire(player, model)
        }
      }),
      { ...settings, examples: histories.map((commands) => [commands]), endOnFailure: true },
    )
    expect(outcome.failed).toBe(true)
  })
})
