import { call, type Deeds } from './deed.ts'
import type { OwnHoldfast, Past } from './ledger-stage.ts'

const credits = (hf: OwnHoldfast) => hf.credits({ name: 'credits' })

/** Id of the hold that `settle` and `release` are about. */
let held = ''

/** Two grants of 10, of which 4 are spent and 5 held; a third one has lapsed, which nobody has booked. */
export const granted: Past = {
  async before(hf) {
    const book = credits(hf)
    await book.grant('ann', 10, { operationId: 'first', priority: 1 })
    await book.grant('ann', 10, { operationId: 'second', priority: 2 })
    await book.grant('ann', 3, { operationId: 'lapsed', priority: 9, expiresIn: '1 h' })
    await book.spend('ann', 4, { operationId: 'past' })
    const verdict = await book.hold('ann', 5, { operationId: 'held', ttl: '1 h' })
    if (!verdict.ok || verdict.holdId === undefined) throw new Error('no hold')
    held = verdict.holdId
  },
  later: `UPDATE holdfast.credit_grant SET expires_at = now() - interval '1 minute' WHERE operation_id = 'lapsed';
     UPDATE holdfast.balance SET due_at = now() - interval '1 minute'`,
}

export const creditDeeds: Deeds = {
  grant: (id) => (hf, tx) =>
    call(credits(hf).grant, tx, 'ann', 5, { operationId: id, priority: 0 }),
  spend: (id) => (hf, tx) => call(credits(hf).spend, tx, 'ann', 6, { operationId: id }),
  hold: (id) => (hf, tx) => call(credits(hf).hold, tx, 'ann', 6, { operationId: id, ttl: '1 h' }),
  settle: () => (hf, tx) => call(credits(hf).settle, tx, held, 7),
  release: () => (hf, tx) => call(credits(hf).release, tx, held),
  refund: (id) => (hf, tx) =>
    call(credits(hf).refund, tx, 'ann', 3, { operationId: id, of: 'past' }),
  void: (id) => (hf, tx) => call(credits(hf).voidGrant, tx, 'ann', 'first', { operationId: id }),
  sweep: () => async (hf) => void (await hf.ledger.sweep()),
}
