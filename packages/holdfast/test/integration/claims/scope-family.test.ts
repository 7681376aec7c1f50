/**
 * R1 as a class: whatever takes a scope keeps equal names of different scopes apart, in every part of the
 * library. The scopes share one bucket, so that nothing but the scope itself can tell them apart.
 */
import { describe, expect, test } from 'vitest'
import { bucketOf } from '../../../src/core/bucket.ts'
import { ledgerFixture } from '../../support/ledger-fixture.ts'

const fixture = ledgerFixture()
const count = 6

/** Scopes of one bucket, by trying names. */
function sharing(bucket: number, prefix: string): string[] {
  const found: string[] = []
  for (let at = 0; found.length < count; at += 1) {
    const scope = `${prefix}-${at}`
    if (bucketOf(scope) === bucket) found.push(scope)
  }
  return found
}

interface Part {
  readonly name: string
  /** Does the same under the same name; what it answers must not depend on the other scopes. */
  act(scope: string): Promise<unknown>
  readonly expected: unknown
}

const parts = (): readonly Part[] => {
  const { hf } = fixture
  const plain = hf.work({ queue: 'family' })
  const limited = hf.work({ queue: 'family limited', perScope: { limit: 1 } })
  const quota = hf.quota({ name: 'family', limit: 5, per: 'day' })
  const credits = hf.credits({ name: 'family credits' })
  const stock = hf.stock({ name: 'family stock' })
  return [
    {
      name: 'work: a unique key',
      act: async (scope) => (await plain.enqueue({ payload: 1, scope, uniqueKey: 'same' })).added,
      expected: true,
    },
    {
      name: 'work: the limit of claims at a time',
      async act(scope) {
        await limited.enqueue([1, 2].map((payload) => ({ payload, scope })))
        return (await limited.claim(2)).map(({ row }) => row.scope)
      },
      expected: ['own'],
    },
    {
      name: 'once: a key',
      act: async (scope) =>
        (await hf.once('same', () => scope, { scope, payload: scope })) as unknown,
      expected: { ok: true, result: 'own', replayed: false },
    },
    {
      name: 'leases: a name',
      act: async (scope) =>
        (await hf.leases.tryAcquire('same', { scope, ttl: '1 min' })) !== undefined,
      expected: true,
    },
    {
      name: 'quota: a key and an operation id',
      act: async (scope) =>
        (await quota.consume('same', 5, { scope, operationId: 'same-operation' })).ok,
      expected: true,
    },
    {
      name: 'credits: a grant and an operation id',
      async act(scope) {
        await credits.grant('same', 7, { scope, operationId: 'same-grant' })
        return (await credits.spend('same', 7, { scope, operationId: 'same-spend' })).ok
      },
      expected: true,
    },
    {
      name: 'stock: an item and an operation id',
      async act(scope) {
        const lines = [{ sku: 'same', quantity: 3 }]
        await stock.receive(lines, { scope, externalId: 'same-receipt' })
        return (await stock.issue(lines, { scope, externalId: 'same-issue' })).ok
      },
      expected: true,
    },
  ]
}

const names = [
  'work: a unique key',
  'work: the limit of claims at a time',
  'once: a key',
  'leases: a name',
  'quota: a key and an operation id',
  'credits: a grant and an operation id',
  'stock: an item and an operation id',
]

describe('R1: scopes of one bucket do not meet in', () => {
  test.each(names)('%s', async (name) => {
    const part = parts().find((each) => each.name === name) as Part
    for (const scope of sharing(77, name.slice(0, 4))) {
      const answer = JSON.parse(
        (JSON.stringify(await part.act(scope)) ?? 'null').replaceAll(scope, 'own'),
      ) as unknown
      expect(answer).toEqual(part.expected)
    }
  })
})
