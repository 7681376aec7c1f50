import { call, type Deeds } from './deed.ts'
import type { OwnHoldfast, Past } from './ledger-stage.ts'

const stock = (hf: OwnHoldfast) => hf.stock({ name: 'stock', locations: ['north', 'south'] })

/** Id of the reservation that `settle` and `release` are about. */
let held = ''

const line = (sku: string, quantity: number, location = 'north') => ({ sku, quantity, location })

/** 5 mugs and 5 tees in the north, of which 2 each are reserved; 1 mug in the south; 1 tee was sold. */
export const stocked: Past = {
  async before(hf) {
    const book = stock(hf)
    await book.receive([line('mug', 5), line('tee', 6)] as never, { externalId: 'north' })
    await book.receive([line('mug', 1, 'south')] as never, { externalId: 'south' })
    await book.issue([line('tee', 1)] as never, { externalId: 'past' })
    const verdict = await book.reserve([line('mug', 2), line('tee', 2)] as never, {
      externalId: 'held',
      ttl: '1 h',
    })
    if (!verdict.ok || verdict.holdId === undefined) throw new Error('no reservation')
    held = verdict.holdId
  },
}

export const stockDeeds: Deeds = {
  issue: (id) => (hf, tx) =>
    call(stock(hf).issue, tx, [line('mug', 2), line('tee', 2)], { externalId: id }),
  'issue backwards': (id) => (hf, tx) =>
    call(stock(hf).issue, tx, [line('tee', 2), line('mug', 2)], { externalId: id }),
  reserve: (id) => (hf, tx) =>
    call(stock(hf).reserve, tx, [line('tee', 2), line('mug', 1)], { externalId: id, ttl: '1 h' }),
  settle: () => (hf, tx) => call(stock(hf).settle, tx, held),
  release: () => (hf, tx) => call(stock(hf).release, tx, held),
  'move south': (id) => (hf, tx) =>
    call(stock(hf).transfer, tx, [{ sku: 'mug', quantity: 2 }], {
      externalId: id,
      from: 'north',
      to: 'south',
    }),
  'move north': (id) => (hf, tx) =>
    call(stock(hf).transfer, tx, [{ sku: 'mug', quantity: 1 }], {
      externalId: id,
      from: 'south',
      to: 'north',
    }),
  return: (id) => (hf, tx) =>
    call(stock(hf).return, tx, [line('tee', 1)], { externalId: id, of: 'past' }),
  adjust: (id) => (hf, tx) =>
    call(stock(hf).adjust, tx, [line('mug', -2)], { externalId: id, reason: 'broken' }),
}
