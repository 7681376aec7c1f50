import { call, type Deeds } from './deed.ts'
import type { OwnHoldfast, Past } from './ledger-stage.ts'

const calls = (hf: OwnHoldfast) => hf.quota({ name: 'calls', limit: 10, per: 'lifetime' })

/** Id of the hold that `settle`, `release` and `extend` are about; `before` of a past makes it. */
let held = ''

async function before(hf: OwnHoldfast): Promise<void> {
  const quota = calls(hf)
  await quota.consume('ann', 4, { operationId: 'past' })
  const verdict = await quota.hold('ann', 3, { operationId: 'held', ttl: '1 h' })
  if (!verdict.ok || verdict.holdId === undefined) throw new Error('no hold')
  held = verdict.holdId
}

const pastDue = (which: string): string =>
  `UPDATE holdfast.hold SET expires_at = now() - interval '1 minute' WHERE operation_id = '${which}';
   UPDATE holdfast.balance SET due_at = now() - interval '1 minute'`

/** 4 of 10 used, 3 held. */
export const heldOpen: Past = { before }

/** The same, and the time of the hold is over, which nobody has booked. */
export const heldDue: Past = { before, later: pastDue('held') }

/** 4 of 10 used, 3 held; the time of 2 more is over. */
export const anotherDue: Past = {
  async before(hf) {
    await before(hf)
    await calls(hf).hold('ann', 2, { operationId: 'due', ttl: '1 h' })
  },
  later: pastDue('due'),
}

export const quotaDeeds: Deeds = {
  consume: (id) => (hf, tx) => call(calls(hf).consume, tx, 'ann', 2, { operationId: id }),
  hold: (id) => (hf, tx) => call(calls(hf).hold, tx, 'ann', 3, { operationId: id, ttl: '1 h' }),
  refund: (id) => (hf, tx) => call(calls(hf).refund, tx, 'ann', 3, { operationId: id, of: 'past' }),
  'set limit': (id) => (hf, tx) => call(calls(hf).setLimit, tx, 'ann', 7, { operationId: id }),
  adjust: (id) => (hf, tx) =>
    call(calls(hf).adjust, tx, 'ann', 1, { operationId: id, reason: 'a mistake' }),
  settle: () => (hf, tx) => call(calls(hf).settle, tx, held, 2),
  release: () => (hf, tx) => call(calls(hf).release, tx, held),
  extend: () => (hf, tx) => call(calls(hf).extend, tx, held, '2 h'),
  // What it answers depends on who works on the account at the moment, and may.
  sweep: () => async (hf) => void (await hf.ledger.sweep()),
}
