import { type Actor, newId, type Stage } from '../crew/actor.ts'
import type { Quota } from '../../packages/holdfast/src/quota/index.ts'
import { answerOf, type EndAsked, type LedgerAsked } from './ledger-answer.ts'
import { tokensBook } from './holds-book.ts'

const slotMs = 500
const keys = 2

/** Puts aside, then charges, gives back, or forgets: the last is what happens when a process dies. */
export const holdsActor: Actor = {
  workload: 'holds',
  copies: 2,
  async act(stage) {
    const { app, random, stopping } = stage
    const quota = app.hf.quota(tokensBook.options)
    const sweeper = app.hf.ledger.startSweeper({ every: '300 ms' })
    while (!stopping.aborted) {
      const key = `tokens-${stage.slot(slotMs)}-${random.integer(1, keys)}`
      const amount = random.integer(2, 6)
      const dice = random.integer(0, 99)
      const id = newId(stage)
      const holdId = await hold(stage, quota, key, amount, id)
      await stage.pace()
      if (holdId !== undefined) {
        if (dice < 60) await settle(stage, quota, { key, amount, id, holdId }, dice % 6 === 0)
        else if (dice < 85) await release(stage, quota, { key, amount, id, holdId })
      }
      await stage.pace()
    }
    await sweeper.stop()
  },
}

async function hold<Tx>(
  stage: Stage<Tx>,
  quota: Quota<Tx, number>,
  key: string,
  amount: number,
  id: string,
): Promise<string | undefined> {
  const value: LedgerAsked = { lines: [{ book: quota.name, key, amount }] }
  const { outcome, answer } = await stage.recorder.persist(
    { operation: 'hold', key, id, value },
    async () => answerOf(await quota.hold(key, amount, { operationId: id, ttl: tokensBook.ttlMs })),
  )
  return outcome === 'ok' ? answer?.value.holdId : undefined
}

interface Held {
  readonly key: string
  readonly amount: number
  readonly id: string
  readonly holdId: string
}

async function settle<Tx>(
  stage: Stage<Tx>,
  quota: Quota<Tx, number>,
  { key, amount, holdId }: Held,
  again: boolean,
): Promise<void> {
  const actual = stage.random.integer(0, amount + 1)
  // The book caps what goes beyond.
  const value: EndAsked = { holdId, charge: Math.min(actual, amount), lines: 1 }
  const asked = { operation: 'settle', key, value }
  const call = async () => answerOf(await quota.settle(holdId, actual))
  const { outcome } = await stage.recorder.persist(asked, call)
  if (again && outcome === 'ok') await stage.recorder.persist(asked, call)
}

async function release<Tx>(
  stage: Stage<Tx>,
  quota: Quota<Tx, number>,
  { key, holdId }: Held,
): Promise<void> {
  const value: EndAsked = { holdId, charge: 0, lines: 1 }
  await stage.recorder.persist({ operation: 'release', key, value }, async () =>
    answerOf(await quota.release(holdId)),
  )
}
