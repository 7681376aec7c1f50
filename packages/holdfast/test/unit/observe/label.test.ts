import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lockKey } from '../../../src/core/locks/lock-key.ts'
import { labelCandidates } from '../../../src/observe/locks/label.ts'

const idsOf = (label: string): string[] => labelCandidates(label).ids.map(({ id }) => id)

/** What the server makes of a name from version 16 on. */
function escaped(text: string): string {
  return [...Buffer.from(text)]
    .map((byte) =>
      byte >= 32 && byte < 127
        ? String.fromCharCode(byte)
        : `\\x${byte.toString(16).padStart(2, '0')}`,
    )
    .join('')
}

describe('a label', () => {
  const piece = fc.string({
    minLength: 1,
    maxLength: 4,
    unit: fc.constantFrom('a', ':', 'é', ' ', '+'),
  })

  test('whose key has few colons has it among its candidates, with its own namespace', () => {
    fc.assert(
      fc.property(piece, fc.array(piece, { minLength: 1, maxLength: 2 }), (namespace, parts) => {
        const key = lockKey(namespace, ...parts)
        fc.pre(key.name.split(':').length <= 9)
        for (const label of [key.name, `${key.name} +3`, escaped(key.name)]) {
          expect(labelCandidates(label).ids).toContainEqual({
            id: `1:${key.lock.id}`,
            name: key.name,
            namespace,
          })
        }
      }),
    )
  })

  test('of many colons is left to the registry, so that reading one stays cheap', () => {
    expect(idsOf(':'.repeat(60))).toEqual([])
    expect(idsOf('a:b:c:d:e:f:g:h:i')).toHaveLength(255)
  })

  test('that is no key has none', () => {
    for (const label of ['', 'plain', ':', 'a:', ':a']) expect(idsOf(label)).toEqual([])
  })

  test('of a legacy key says which number it is, or which text the server is to hash', () => {
    expect(idsOf('legacy:-42')).toContain('1:-42')
    expect(idsOf('legacy:-1,7')).toContain('2:-1,7')
    expect(labelCandidates('legacy:hashtext(a (b))').hashed).toEqual([
      { text: 'a (b)', high: undefined, name: 'legacy:hashtext(a (b))', namespace: 'legacy' },
    ])
    expect(labelCandidates('legacy:-5,hashtext(x)').hashed).toMatchObject([{ text: 'x', high: -5 }])
    // Cut off.
    expect(labelCandidates('legacy:hashtext(a').hashed).toEqual([])
  })
})
