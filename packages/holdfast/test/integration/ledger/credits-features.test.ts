import { describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast } from '../../../src/index.ts'
import type { PreparedLine } from '../../../src/ledger/book.ts'
import { migrateFiles } from '../../../src/schema/migrate.ts'
import { ownFiles } from '../../../src/schema/schema-files.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { creditsRoom } from './credits-room.ts'
import type { CreditsOptions } from '../../../src/credits/options.ts'

const fixture = ledgerFixture()
const image = { feature: 'image' } as const
const onlyFor = ['image'] as const

/** An account with 10 for anything and 100 for images. */
async function account(options: Omit<CreditsOptions, 'name' | 'prices' | 'amounts'> = {}) {
  const [name, key] = [fresh(), fresh()]
  const credits = fixture.hf.credits({ name, prices: { chat: 1, image: 25 }, ...options })
  const room = creditsRoom(fixture, name)
  await credits.grant(key, 10, { operationId: 'bought' })
  await credits.grant(key, 100, { operationId: 'launch', onlyFor })
  const spendable = async (feature?: string): Promise<number> =>
    (await credits.balance(key, feature === undefined ? {} : { feature })).spendable
  return { name, key, credits, room, spendable }
}

describe('a grant for some features only', () => {
  test('is spent on them and on nothing else', async () => {
    const { key, credits, room, spendable } = await account()
    expect([await spendable(), await spendable('image'), await spendable('chat')]).toEqual([
      10, 110, 10,
    ])
    const refused = { ok: false, reason: 'insufficient', available: 110, spendable: 10 }
    // Decided under the lock, where there would be enough, and at first sight, where there is not.
    for (const amount of [11, 200]) {
      expect(await credits.spend(key, amount, { operationId: fresh() })).toMatchObject(refused)
      const hold = credits.hold(key, amount, { operationId: fresh(), ttl: '1 min' })
      expect(await hold).toMatchObject(refused)
    }
    const chat = credits.charge(key, 'chat', { quantity: 11, operationId: fresh() })
    expect(await chat).toMatchObject(refused)
    expect(await credits.charge(key, 'chat', { operationId: 'c' })).toMatchObject({ ok: true })
    expect(await credits.charge(key, 'image', { quantity: 4, operationId: 'i' })).toMatchObject({
      ok: true,
      available: 9,
    })
    expect(await room.grants(key)).toEqual({ bought: '10/0/0', launch: '91/9/0' })
    await room.assertAddsUp(key)
  })

  test('and an overdraft that nobody has used yet are what is told', async () => {
    const { key, credits, spendable } = await account({ overdraft: 50 })
    expect([await spendable(), await spendable('image')]).toEqual([60, 160])
    expect(await credits.balance(key)).toMatchObject({ available: 160, allowance: 50 })
    const taken = await credits.spend(key, 1_000, { operationId: fresh(), upTo: true })
    expect(taken).toMatchObject({ ok: true, taken: 60 })
  })

  test('is spent by a hold around a function', async () => {
    const { key, credits } = await account()
    const options = { estimate: 90, ttl: '1 min', operationId: fresh(), ...image } as const
    await credits.withHold(key, options, async (hold) => await hold.settle(80))
    expect((await credits.balance(key, image)).spendable).toBe(30)
  })

  test('is listed with them, and with the words it came with', async () => {
    const { key, credits } = await account()
    const terms = { onlyFor: ['video', 'image', 'video'], note: { source: 'launch' } }
    await credits.grant(key, 5, { operationId: 'both', ...terms })
    const listed = (await credits.grants(key)).map((each) => [each.onlyFor, each.note])
    expect(listed).toEqual([
      [undefined, undefined],
      [['image'], undefined],
      [['image', 'video'], { source: 'launch' }],
    ])
  })

  test('is not made by a note that says so', async () => {
    const { credits, spendable, key } = await account()
    await credits.grant(key, 7, { operationId: 'noted', note: { onlyFor: ['image'] } })
    expect(await spendable()).toBe(17)
  })

  test('takes what is there for it, and no more', async () => {
    const { key, credits } = await account()
    const taken = await credits.spend(key, 50, { operationId: 'most', upTo: true })
    expect(taken).toMatchObject({ ok: true, taken: 10 })
  })

  test('pays for what a hold of its feature costs above the estimate, and for no other', async () => {
    const { key, credits, room } = await account({ overrun: 'available' })
    const held = async (amount: number, feature?: string): Promise<string> => {
      const options = { operationId: fresh(), ttl: '1 min', ...(feature && { feature }) } as const
      const verdict = await credits.hold(key, amount, options)
      if (!verdict.ok || verdict.holdId === undefined) throw new Error('refused')
      return verdict.holdId
    }
    const plain = await held(5)
    expect(await credits.settle(plain, 11)).toMatchObject({ ok: false, spendable: 5 })
    expect(await credits.settle(plain, 6)).toMatchObject({ ok: true })
    expect(await credits.settle(await held(50, 'image'), 104)).toMatchObject({ ok: true })
    expect(await room.grants(key)).toEqual({ bought: '10/0/0', launch: '100/0/0' })
    await room.assertAddsUp(key)
  })

  test('gets back what it paid, and gives nothing of that to others', async () => {
    const { key, credits, room, spendable } = await account()
    await credits.spend(key, 105, { operationId: 'used', ...image })
    await credits.refund(key, 50, { operationId: 'back', of: 'used' })
    expect(await room.grants(key)).toEqual({ bought: '10/0/0', launch: '45/55/0' })
    expect([await spendable(), await spendable('image')]).toEqual([0, 55])
  })

  test('pays no debts', async () => {
    const { key, credits, room, spendable } = await account({ overdraft: 20 })
    await credits.spend(key, 25, { operationId: 'deep' })
    expect([await spendable(), await spendable('image')]).toEqual([5, 105])
    await credits.grant(key, 40, { operationId: 'more', onlyFor })
    expect([await spendable(), await spendable('image')]).toEqual([5, 145])
    await credits.grant(key, 100, { operationId: 'paid' })
    expect([await spendable(), await spendable('image')]).toEqual([105, 245])
    expect(await room.grants(key)).toEqual({
      bought: '10/0/0',
      launch: '0/100/0',
      more: '0/40/0',
      paid: '15/85/0',
    })
    await room.assertAddsUp(key)
  })

  test('rolls over as what it is', async () => {
    const { key, credits, room, spendable } = await account()
    await credits.grant(key, 30, {
      operationId: 'rolls',
      onlyFor: ['chat'],
      expiresIn: '1 h',
      rollover: { limit: 20, for: '1 h' },
    })
    await room.makeDue(key, 'rolls', 'expires_at')
    expect([await spendable('chat'), await spendable()]).toEqual([30, 10])
    await room.assertAddsUp(key)
  })

  test('can not be transferred', async () => {
    const { key, credits } = await account()
    for (const [amount, named] of [
      [11, {}],
      [11, image],
      [111, image],
    ] as const) {
      const sent = await fixture.hf.ledger.transfer(
        { from: [await credits.line(key, amount)], to: [credits.grantLine(fresh(), amount)] },
        { operationId: fresh(), acrossScopes: true, ...named },
      )
      expect(sent).toMatchObject({ ok: false, reason: 'insufficient', spendable: 10 })
    }
  })

  test('that comes in by an operation is not there for what the same one takes', async () => {
    const { key, credits, room } = await account()
    await credits.spend(key, 30, { operationId: 'used', ...image })
    const together = async (line: PreparedLine) =>
      await fixture.hf.ledger.apply([line, await credits.line(key, 8)], {
        operationId: fresh(),
        scope: key,
      })
    // The 10 for anything went first, so that nothing is left of them.
    expect(await together(credits.grantLine(key, 8, { onlyFor }))).toMatchObject({ ok: false })
    expect(await together(await credits.line(key, 20, { of: 'used' }))).toMatchObject({ ok: false })
    expect(await room.grants(key)).toEqual({ bought: '10/0/0', launch: '20/80/0' })
    await room.assertAddsUp(key)
  })

  test('nor is it where the account had none before', async () => {
    const [key, credits] = [fresh(), fixture.hf.credits({ name: fresh() })]
    const lines = [credits.grantLine(key, 8, { onlyFor }), await credits.line(key, 8)]
    const verdict = await fixture.hf.ledger.apply(lines, { operationId: fresh(), scope: key })
    expect(verdict).toMatchObject({ ok: false, reason: 'insufficient' })
  })

  test.each([[[]], ['image'], [[{}]], [['']], [null]])('is refused for %j', async (wrong) => {
    const { key, credits } = await account()
    const granted = credits.grant(key, 1, { operationId: fresh(), onlyFor: wrong as string[] })
    await expect(granted).rejects.toMatchObject({
      code: expect.stringMatching(/^(OPTION_INVALID|LEDGER_NAME_INVALID)$/),
    })
  })

  test('control: where nothing is set apart, anything is paid from it', async () => {
    const schema = 'not_apart'
    const files = ownFiles()
    const repeatables = files.repeatables.map((file) => ({
      ...file,
      text: file.text.replace('AND NOT open_to(c.note, feature)', 'AND false'),
    }))
    await migrateFiles(fromPg(fixture.observer), { ...files, repeatables }, { schema })
    const hf = createHoldfast(fromPg(fixture.pool), { schema })
    const [key, credits] = [fresh(), hf.credits({ name: fresh() })]
    await credits.grant(key, 100, { operationId: 'launch', onlyFor })
    expect(await credits.spend(key, 50, { operationId: 'lie' })).toMatchObject({ ok: true })
    const [launch] = await credits.grants(key)
    expect([launch?.remaining, (await credits.balance(key)).available]).toEqual([100, 50])
  })
})
