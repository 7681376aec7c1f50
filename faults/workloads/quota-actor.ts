import { type Actor, newId, type Stage } from '../crew/actor.ts'
import type { Quota } from '../../packages/holdfast/src/quota/index.ts'
import { answerOf, type LedgerAsked } from './ledger-answer.ts'
import { quotaBooks } from './quota-books.ts'

/** How long everybody works on the same few keys: the histories of a key stay short enough to be searched. */
const slotMs = 300
const keys = 2

/** Uses up quotas of all kinds at their limit, gives some back, and asks some things twice. */
export const quotaActor: Actor = {
  workload: 'quota',
  copies: 2,
  async act(stage) {
    const { app, random, stopping } = stage
    const quotas = {
      lifetime: app.hf.quota(quotaBooks.lifetime),
      minute: app.hf.quota(quotaBooks.minute),
      rolling: app.hf.quota(quotaBooks.rolling),
    }
    /** What can be given back. */
    let taken: { readonly id: string; readonly key: string; readonly amount: number } | undefined
    while (!stopping.aborted) {
      const dice = random.integer(0, 99)
      const amount = random.integer(1, 4)
      const key = `calls-${stage.slot(slotMs)}-${random.integer(1, keys)}`
      if (dice < 15 && taken !== undefined) {
        const { id: of, key: from, amount: most } = taken
        taken = undefined
        await refund(stage, quotas.lifetime, from, random.integer(1, most), of)
      } else if (dice < 75) {
        const id = await consume(stage, quotas.lifetime, key, amount, dice % 10 === 0)
        if (id !== undefined) taken = { id, key, amount }
      } else if (dice < 85) {
        await consume(stage, quotas.minute, `minute-${random.integer(1, 3)}`, amount, false)
      } else {
        await consume(stage, quotas.rolling, `rolling-${random.integer(1, 3)}`, amount, false)
      }
      await stage.pace()
    }
  },
}

/** Gives the id if it was accepted. */
async function consume<Tx>(
  stage: Stage<Tx>,
  quota: Quota<Tx, number>,
  key: string,
  amount: number,
  again: boolean,
): Promise<string | undefined> {
  const id = newId(stage)
  const value: LedgerAsked = { lines: [{ book: quota.name, key, amount }] }
  const asked = { operation: 'consume', key, id, value }
  const call = async () => answerOf(await quota.consume(key, amount, { operationId: id }))
  const { outcome } = await stage.recorder.persist(asked, call)
  // A duplicate, as a client sends it that did not wait for the answer.
  if (again && outcome === 'ok') await stage.recorder.persist(asked, call)
  return outcome === 'ok' ? id : undefined
}

async function refund<Tx>(
  stage: Stage<Tx>,
  quota: Quota<Tx, number>,
  key: string,
  amount: number,
  of: string,
): Promise<void> {
  const id = newId(stage)
  const value: LedgerAsked = { lines: [{ book: quota.name, key, amount }] }
  await stage.recorder.persist({ operation: 'refund', key, id, value }, async () =>
    answerOf(await quota.refund(key, amount, { operationId: id, of })),
  )
}
