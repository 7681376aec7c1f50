import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { creditsRoom } from './credits-room.ts'
import { GrantsModel } from '../../support/grants-model.ts'

const fixture = ledgerFixture()
const room = creditsRoom(fixture, 'credits')
const overdraft = 15

const amount = fc.integer({ min: 1, max: 40 })
/** Which of those there are. */
const pick = fc.nat(20)

const features = ['chat', 'image'] as const
const feature = fc.option(fc.constantFrom(...features), { nil: undefined })
const onlyFor = fc.option(fc.subarray([...features], { minLength: 1 }), { nil: undefined })

const command = fc.oneof(
  fc.record({
    act: fc.constant('grant' as const),
    amount,
    onlyFor,
    priority: fc.nat(2),
    rank: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined }),
    rollover: fc.nat(12),
  }),
  fc.record({ act: fc.constantFrom('spend' as const, 'hold' as const), amount, feature }),
  fc.record({ act: fc.constant('settle' as const), pick, amount: fc.nat(60) }),
  fc.record({ act: fc.constantFrom('release' as const, 'lose' as const), pick }),
  fc.record({ act: fc.constant('refund' as const), pick, amount }),
  fc.record({ act: fc.constantFrom('expire' as const, 'void' as const), pick }),
)
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never

/** Plays one history on a new account and compares after every step. */
async function play(history: readonly Command[]): Promise<void> {
  const key = fresh()
  const credits = fixture.hf.credits({ name: 'credits', overdraft })
  const model = new GrantsModel(overdraft)
  const holds = new Map<string, string>()
  const one = (of: readonly string[], at: number): string | undefined => of[at % of.length]

  const step = async (asked: Command, name: string): Promise<void> => {
    const operationId = name
    switch (asked.act) {
      case 'grant': {
        const { rank, rollover, priority, onlyFor } = asked
        const terms =
          rank === undefined
            ? {}
            : {
                expiresAt: new Date(Date.UTC(2100, rank)),
                ...(rollover > 0 && { rollover: { limit: rollover, for: '100 days' } as const }),
              }
        model.grant(
          name,
          asked.amount,
          priority,
          rank ?? Infinity,
          rank === undefined ? 0 : rollover,
          onlyFor,
        )
        await credits.grant(key, asked.amount, {
          operationId,
          priority,
          ...terms,
          ...(onlyFor && { onlyFor }),
        })
        return
      }
      case 'spend':
      case 'hold': {
        const before = { available: model.available, spendable: model.spendable(asked.feature) }
        const fits = model.take(name, asked.amount, asked.act === 'hold', asked.feature)
        const operation = { operationId, ...(asked.feature && { feature: asked.feature }) }
        const verdict =
          asked.act === 'spend'
            ? await credits.spend(key, asked.amount, operation)
            : await credits.hold(key, asked.amount, { ...operation, ttl: '1 h' })
        expect(verdict).toMatchObject({
          ok: fits,
          ...(fits ? { available: model.available } : before),
        })
        if (verdict.ok && verdict.holdId !== undefined) holds.set(name, verdict.holdId)
        return
      }
      case 'settle':
      case 'release': {
        const held = one(model.taken('open'), asked.pick)
        if (held === undefined) return
        model.settle(held, asked.act === 'settle' ? asked.amount : undefined)
        const id = holds.get(held) as string
        const ended =
          asked.act === 'settle' ? credits.settle(id, asked.amount) : credits.release(id)
        expect(await ended).toMatchObject({ ok: true, available: model.available })
        return
      }
      case 'lose': {
        const held = one(model.taken('open'), asked.pick)
        if (held === undefined) return
        model.settle(held, undefined)
        await room.makeHoldsDue(key, held)
        await credits.grants(key)
        return
      }
      case 'refund': {
        const of = one([...model.taken('spent'), ...model.taken('over')], asked.pick)
        if (of === undefined) return
        const fits = model.refund(of, asked.amount)
        const verdict = await credits.refund(key, asked.amount, { operationId, of })
        expect(verdict.ok).toBe(fits)
        return
      }
      case 'expire':
      case 'void': {
        const grant = one(model.named('active'), asked.pick)
        if (grant === undefined) return
        const made = grant.replace(', rolled', '')
        if (asked.act === 'void' && made === grant) {
          model.end(grant, false)
          await credits.voidGrant(key, made, { operationId })
        } else {
          model.end(grant, true)
          await room.makeDue(key, made, 'expires_at')
          await credits.grants(key)
        }
      }
    }
  }

  // The model knows nothing of an account without a grant.
  await credits.grant(key, 10, { operationId: 'first' })
  model.grant('first', 10, 50, Infinity, 0)
  for (const [at, asked] of history.entries()) {
    await step(asked, `${at} ${asked.act}`)
    expect(await room.grants(key)).toEqual(model.grants)
    const feature = features[at % 3]
    const { spendable } = await credits.balance(key, feature ? { feature } : {})
    expect(spendable).toBe(model.spendable(feature))
  }
  await room.assertAddsUp(key)
}

test('grants do what a model without a database says, step by step', {
  timeout: 120_000,
}, async () => {
  await fc.assert(fc.asyncProperty(fc.array(command, { minLength: 5, maxLength: 30 }), play), {
    numRuns: Number(process.env['HOLDFAST_RUNS'] ?? 40),
    seed: 20_261,
  })
})
