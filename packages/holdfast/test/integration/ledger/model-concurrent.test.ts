import { barrier } from '@holdfast/testkit'
import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createKernel } from '../../../src/ledger/kernel.ts'
import { migrateFiles } from '../../../src/schema/migrate.ts'
import { ownFiles } from '../../../src/schema/schema-files.ts'
import { anyCommand, termsOf } from '../../support/ledger-arbitrary.ts'
import type { Answer, Command } from '../../support/ledger-command.ts'
import { ledgerFixture } from '../../support/ledger-fixture.ts'
import { LedgerModel } from '../../support/ledger-model.ts'
import { inOrder, LedgerPlayer } from '../../support/ledger-player.ts'
import { type Played, serialOrder, wasShort } from '../../support/serial-order.ts'

/**
 * Histories of several processes at once, with ids, keys and holds in common. What they were told
 * must be what the model says to the same commands in some order, found by the sequence numbers.
 */
const fixture = ledgerFixture()
const seed = Number(process.env['HOLDFAST_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
const settings = { seed, numRuns: Number(process.env['HOLDFAST_RUNS'] ?? 40) }
const workers = 4
const unlocked = 'unlocked'
const pools: pg.Pool[] = []

beforeAll(async () => {
  for (let worker = 0; worker < workers; worker += 1) {
    pools.push(new pg.Pool({ connectionString: fixture.database.url, max: 1 }))
  }
  const files = ownFiles()
  const repeatables = files.repeatables.map((file) => ({
    ...file,
    text: file.text.replaceAll(/FOR NO KEY UPDATE( OF \w+)?( SKIP LOCKED)?/g, ''),
  }))
  await migrateFiles(fromPg(fixture.observer), { ...files, repeatables }, { schema: unlocked })
})
afterAll(async () => {
  for (const pool of pools) await pool.end()
})

/** Each worker plays its commands one after the other, all of them at the same time. */
async function playTogether(
  lists: readonly (readonly Command[])[],
  schema: string,
): Promise<{ played: Played[]; player: LedgerPlayer }> {
  const together = barrier(lists.length)
  const player = new LedgerPlayer(createKernel(fromPg(fixture.pool), { schema }), {
    schema,
    termsOf,
  })
  const played = await Promise.all(
    lists.map(async (commands, worker) => {
      const kernel = createKernel(fromPg(pools[worker] as pg.Pool), { schema })
      const own = player.with(kernel)
      await together()
      const answers: Played[] = []
      for (const command of commands) answers.push({ command, answer: await own.play(command) })
      return answers
    }),
  )
  return { played: played.flat(), player }
}

/** Fails unless the answers are those of some order. */
async function checkSerial(
  lists: readonly (readonly Command[])[],
  schema = 'holdfast',
): Promise<void> {
  const { played, player } = await playTogether(lists, schema)
  const movements = await player.movements(fixture.observer)
  const model = new LedgerModel({ termsOf })
  for (const { command, answer } of serialOrder(played, movements)) {
    expect(answer).toEqual(inOrder(command, model.call([command])[0] as Answer))
  }
  expect(movements).toEqual(model.movements)
  for (const { command, answer } of played) {
    if (answer.ok && !answer.replayed) continue
    if (answer.reason === 'insufficient') {
      expect({ command, answer, real: wasShort({ command, answer }, movements) }).toMatchObject({
        real: true,
      })
      continue
    }
    // What was applied and how a hold ended stays so: the model says the same at the end.
    const [final] = model.call([command]) as [Answer]
    if (answer.ok) expect(answer).toEqual(inOrder(command, final))
    // Before the operation or hold that it names was there, or before it was settled.
    else if (answer.reason === 'not-found' || answer.reason === 'over-refund') continue
    else
      expect([answer.reason, answer.field, answer.state]).toEqual([
        final.reason,
        final.field,
        final.state,
      ])
  }
}

/** Without holds that expire: when they do is up to the clock. */
const lasting = anyCommand.map((command) =>
  command.act === 'move' ? Object.assign(command, { due: false }) : command,
)
const lists = fc.array(fc.array(lasting, { maxLength: 15, size: 'max' }), {
  minLength: workers,
  maxLength: workers,
})

describe(`histories of ${workers} processes, of seed ${seed}`, () => {
  test('are as if one after the other', { timeout: 120_000 }, async () => {
    // The same commands may come out another way: shrinking would follow chance.
    const outcome = await fc.check(
      fc.asyncProperty(lists, async (commands) => await checkSerial(commands)),
      { ...settings, endOnFailure: true },
    )
    const { failed, errorInstance } = outcome
    expect({ failed, report: fc.defaultReportMessage(outcome), errorInstance }).toMatchObject({
      failed: false,
    })
  })

  test('control: without the lock on the account they are not', { timeout: 120_000 }, async () => {
    const outcome = await fc.check(
      fc.asyncProperty(lists, async (commands) => await checkSerial(commands, unlocked)),
      // It ends with the first that is found out; how soon two meet is up to chance.
      { ...settings, numRuns: 1_000, endOnFailure: true },
    )
    expect(outcome.failed).toBe(true)
  })
})
