import { describe, expect, it } from 'vitest'
import { checkHolds } from '../../checks/check-holds.ts'
import type { Movement } from '../../checks/check-ledger.ts'
import { checkQuota } from '../../checks/check-quota.ts'
import { checkStock } from '../../checks/check-stock.ts'
import type { LedgerAnswer } from '../../workloads/ledger-answer.ts'
import { LedgerStory } from '../support/ledger-story.ts'
import { rulesOf } from '../support/operation.ts'

const calls = { name: 'calls', limit: 10 }

function quotaStory(): LedgerStory {
  const story = new LedgerStory(calls.name, calls.limit)
  story.consume('ann', 'one', 4)
  story.consume('ann', 'two', 5)
  story.consume('ann', 'three', 3)
  story.consume('bob', 'four', 10)
  return story
}

function quotaRules(story: LedgerStory): string[] {
  return rulesOf(checkQuota(story.operations, story.movements, calls))
}

/** Changes a movement of an operation: the first, or the one of that kind. */
function rebook(story: LedgerStory, id: string, change: Partial<Movement>, kind?: number): void {
  const at = story.movements.findIndex(
    (movement) => movement.operationId === id && (kind === undefined || movement.kind === kind),
  )
  story.movements[at] = { ...(story.movements[at] as Movement), ...change }
}

function unbook(story: LedgerStory, id: string): void {
  const at = story.movements.findIndex(({ operationId }) => operationId === id)
  story.movements.splice(at, 1)
}

describe('checkQuota', () => {
  it('has nothing to say about a ledger that tells the truth', () => {
    const story = quotaStory()
    story.again(story.at(0))
    story.order('refund', [{ key: 'ann', amount: 2 }], 'five', 'credit')
    story.consume('ann', 'six', 3)
    story.tell({
      operation: 'consume',
      key: 'ann',
      id: 'never',
      outcome: 'unknown',
      asked: { lines: [{ book: calls.name, key: 'ann', amount: 1 }] },
    })
    expect(checkQuota(story.operations, story.movements, calls)).toEqual([])
  })

  it('finds a bound that was crossed, also by somebody who may have been told nothing', () => {
    const story = quotaStory()
    story.book('ann', 'seven', { debit: 2 })
    story.tell({
      operation: 'consume',
      key: 'ann',
      id: 'seven',
      outcome: 'unknown',
      asked: { lines: [{ book: calls.name, key: 'ann', amount: 2 }] },
    })
    expect(quotaRules(story)).toContain('bound_crossed')
  })

  it('finds acknowledged operations that are lost', () => {
    const story = quotaStory()
    unbook(story, 'two')
    expect(quotaRules(story)).toContain('acknowledged_lost')
  })

  it.each([
    ['refused', 'refused_present'],
    ['failed', 'failed_present'],
  ] as const)('finds %s operations that were booked', (outcome, rule) => {
    const story = quotaStory()
    const first = story.at(0)
    const answered = { ...(first.answered as LedgerAnswer), reason: 'conflict' }
    story.retell(first, { outcome, answered })
    expect(quotaRules(story)).toContain(rule)
  })

  it('lets an unknown operation be there or not, but not twice', () => {
    const story = quotaStory()
    story.retell(story.at(1), { outcome: 'unknown', ended: Infinity, answered: undefined })
    expect(quotaRules(story)).toEqual([])
    story.book('ann', 'two', { debit: 1 })
    expect(quotaRules(story)).toContain('applied_twice')
  })

  it('knows when something was booked that its caller had to ask for twice', () => {
    const story = quotaStory()
    // Nothing was known at first; then a replay said that it is done. `three` was refused because of it.
    const second = story.at(1)
    story.retell(second, { outcome: 'unknown', ended: Infinity, answered: undefined })
    const again = { ...second, attempt: 'again', began: second.ended + 1, ended: second.ended + 2 }
    story.operations.splice(2, 0, {
      ...again,
      answered: { ...(second.answered as LedgerAnswer), replayed: true },
    })
    expect(quotaRules(story)).toEqual([])
    // Told so before the other began, but the other was accepted as if there were room.
    story.consume('ann', 'late', 1)
    story.tell({ ...story.at(-1), id: 'more', answered: undefined, outcome: 'unknown' })
    story.book('ann', 'more', { debit: 5 })
    expect(quotaRules(story)).toContain('bound_crossed')
  })

  it('finds an id that was applied twice', () => {
    const story = quotaStory()
    story.consume('bob', 'late', 0)
    const first = story.at(0)
    story.book('ann', 'one', { debit: 1 })
    story.again(first)
    expect(quotaRules(story)).toContain('applied_twice')
  })

  it('finds a replay that is answered otherwise', () => {
    const story = quotaStory()
    const again = story.again(story.at(0))
    const { lines } = again.answered as LedgerAnswer
    story.retell(again, {
      answered: { replayed: true, lines: lines.map((line) => ({ ...line, debited: 9 })) },
    })
    expect(quotaRules(story)).toContain('replay_differs')
  })

  it('finds a replay that says that it is new, and one that is refused', () => {
    const story = quotaStory()
    const again = story.again(story.at(0))
    story.retell(again, { answered: story.at(0).answered })
    expect(quotaRules(story)).toContain('replay_differs')
    const answered = { replayed: false, reason: 'conflict', lines: [] }
    story.retell(story.at(-1), { outcome: 'refused', answered })
    expect(quotaRules(story)).toContain('replay_differs')
  })

  it('finds movements that nobody asked for, gaps, and sums that do not follow', () => {
    const story = quotaStory()
    story.book('bob', 'nobody', { debit: 0 })
    expect(quotaRules(story)).toEqual(['unasked'])
    rebook(story, 'nobody', { seq: 9 })
    expect(quotaRules(story)).toEqual(['chain_broken', 'unasked'])
  })

  it('finds an answer about another movement than the one that was booked', () => {
    const story = quotaStory()
    const first = story.at(0)
    const { lines } = first.answered as LedgerAnswer
    story.retell(first, {
      answered: { replayed: false, lines: lines.map((line) => ({ ...line, debited: 1 })) },
    })
    expect(quotaRules(story)).toContain('answer_differs')
  })

  it('finds a refusal although there was room', () => {
    const story = quotaStory()
    const refused = story.at(2)
    const { lines } = refused.answered as LedgerAnswer
    story.retell(refused, {
      asked: { lines: [{ book: calls.name, key: 'ann', amount: 1 }] },
      answered: { replayed: false, reason: 'insufficient', lines },
    })
    expect(quotaRules(story)).toEqual(['not_linearizable', 'refused_wrongly'])
  })

  it('tells a refusal by sums that were lost from one by sums that leave room', () => {
    const story = quotaStory()
    const { lines } = story.at(2).answered as LedgerAnswer
    const told = (debited: number): string[] => {
      const other = lines.map((line) => ({ ...line, debited, sequence: line.sequence + 1 }))
      const answered = { replayed: false, reason: 'insufficient', lines: other }
      story.retell(story.at(2), { answered })
      return quotaRules(story)
    }
    expect(told(10)).toEqual(['refused_for_lost'])
    expect(told(1)).toEqual(['answer_differs'])
  })

  it('lets a refusal tell the sums of a moment after it was decided', () => {
    const story = quotaStory()
    const refused = story.at(2)
    const back = story.order('refund', [{ key: 'ann', amount: 4 }], 'five', 'credit')
    const { lines } = back.answered as LedgerAnswer
    const told = lines.map((line) => ({ ...line, refusal: 'insufficient' }))
    const answered = { replayed: false, reason: 'insufficient', lines: told }
    // The refund came while it was under way.
    story.retell(refused, { ended: back.ended, answered })
    expect(quotaRules(story)).toEqual([])
    // It had been known before.
    story.retell(story.at(2), { began: back.ended + 1, ended: back.ended + 2 })
    expect(quotaRules(story)).toEqual(['not_linearizable', 'refused_wrongly'])
  })

  it('finds an order of movements that time forbids', () => {
    const story = quotaStory()
    const [first, second] = [story.at(0), story.at(1)]
    story.retell(first, { began: second.ended + 1, ended: second.ended + 2 })
    expect(quotaRules(story)).toContain('not_linearizable')
  })
})

describe('checkHolds', () => {
  const fine = { overdue: 0, audit: [] }
  const story = (): LedgerStory => {
    const held = new LedgerStory('tokens', 10)
    held.order('hold', [{ key: 'ann', amount: 6 }], 'one', 'hold')
    held.end('settle', 'ann', 'one', 6, 5)
    held.order('hold', [{ key: 'ann', amount: 4 }], 'two', 'hold')
    held.end('release', 'ann', 'two', 4, 0)
    held.order('hold', [{ key: 'ann', amount: 4 }], 'three', 'hold')
    held.book('ann', 'three', { kind: 6, hold: -4, holdId: 'uuid-of-three' })
    return held
  }
  const rules = (held: LedgerStory): string[] =>
    rulesOf(checkHolds(held.operations, held.movements, fine))

  it('has nothing to say about holds that ended once', () => {
    expect(checkHolds(story().operations, story().movements, fine)).toEqual([])
  })

  it('finds a hold that ended twice', () => {
    const held = story()
    held.book('ann', 'one', { kind: 6, hold: 0, holdId: 'uuid-of-one' })
    expect(rules(held)).toEqual(['applied_twice'])
  })

  it('finds a settlement that is lost, and one of another amount', () => {
    const lost = story()
    rebook(lost, 'two', { holdId: 'uuid-of-two' })
    lost.movements.splice(1, 1)
    expect(rules(lost)).toContain('acknowledged_lost')
    const other = story()
    rebook(other, 'one', { debit: 3 }, 4)
    expect(rules(other)).toContain('answer_differs')
  })

  it('finds a settlement that was refused or failed, and was booked', () => {
    const held = story()
    held.retell(held.at(1), { outcome: 'refused' })
    expect(rules(held)).toEqual(['refused_present'])
    held.retell(held.at(1), { outcome: 'failed' })
    expect(rules(held)).toEqual(['failed_present'])
    held.retell(held.at(1), { outcome: 'unknown' })
    expect(rules(held)).toEqual([])
  })

  it('finds a settlement that was answered in two ways', () => {
    const held = story()
    const again = held.again(held.at(1))
    const { lines } = again.answered as LedgerAnswer
    held.retell(again, {
      answered: { replayed: true, lines: lines.map((line) => ({ ...line, sequence: 9 })) },
    })
    expect(rules(held)).toEqual(['replay_differs'])
  })

  it('finds holds that are left behind, and whatever the audit finds', () => {
    const { operations, movements } = story()
    const found = checkHolds(operations, movements, { overdue: 2, audit: ['a balance is wrong'] })
    expect(rulesOf(found)).toEqual(['audit', 'leak'])
  })
})

describe('checkStock', () => {
  const story = (): LedgerStory => {
    const shop = new LedgerStory('shop', 0)
    const lines = [
      { key: 'mug', amount: 3 },
      { key: 'cup', amount: 2 },
    ]
    shop.order('receive', lines, 'delivery', 'credit')
    shop.order('issue', lines, 'order')
    shop.order('issue', lines, 'too much')
    return shop
  }
  const rules = (shop: LedgerStory): string[] =>
    rulesOf(checkStock(shop.operations, shop.movements))

  it('has nothing to say about orders that are whole', () => {
    expect(checkStock(story().operations, story().movements)).toEqual([])
  })

  it('lets a remembered refusal be repeated when there is enough again', () => {
    const shop = story()
    const lines = ['mug', 'cup'].map((key) => ({ key, amount: 5 }))
    shop.order('receive', lines, 'more', 'credit')
    shop.again(shop.at(2))
    expect(rules(shop)).toEqual([])
    shop.retell(shop.at(-1), {
      answered: { ...(shop.at(-1).answered as LedgerAnswer), replayed: false },
    })
    expect(rules(shop)).toContain('refused_wrongly')
  })

  it('finds an order of which only some lines are there', () => {
    const shop = story()
    const at = shop.movements.findLastIndex(({ operationId }) => operationId === 'order')
    shop.movements.splice(at, 1)
    expect(rules(shop)).toContain('torn')
  })

  it('finds an order that was refused and later served', () => {
    const shop = story()
    shop.order(
      'receive',
      [
        { key: 'mug', amount: 5 },
        { key: 'cup', amount: 5 },
      ],
      'more',
      'credit',
    )
    shop.order(
      'issue',
      [
        { key: 'mug', amount: 3 },
        { key: 'cup', amount: 2 },
      ],
      'too much',
    )
    expect(rules(shop)).toEqual(['replay_differs'])
  })
})
