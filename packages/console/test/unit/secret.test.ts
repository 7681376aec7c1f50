/** Secrets are compared in a time that says nothing about them. What is measured is noise; the structure is not. */
import { readFileSync } from 'node:fs'
import type * as Crypto from 'node:crypto'
import { afterEach, describe, expect, test, vi } from 'vitest'

const compared: [number, number][] = []
vi.mock('node:crypto', async (original) => {
  const crypto = await original<typeof Crypto>()
  return {
    ...crypto,
    timingSafeEqual: (a: Buffer, b: Buffer) => {
      compared.push([a.length, b.length])
      return crypto.timingSafeEqual(a, b)
    },
  }
})

const { sameSecret } = await import('../../src/auth/secret.ts')
const { findToken, knownTokens } = await import('../../src/auth/tokens.ts')

afterEach(() => {
  compared.length = 0
})

describe('comparing', () => {
  test.each([
    ['a', 'a'],
    ['a', 'b'],
    ['', 'b'],
    ['a'.repeat(20), 'a'.repeat(19)],
    ['a'.repeat(1_000_000), 'a'],
  ])('always looks at two hashes, whatever they are of', (one, other) => {
    expect(sameSecret(one, other)).toBe(one === other)
    expect(compared).toEqual([[32, 32]])
  })

  test('a token is compared with all, whichever it is and whether or not it is one', () => {
    const known = knownTokens(
      ['first', 'second', 'third'].map((name) => ({
        name,
        role: 'view' as const,
        token: name.repeat(5),
      })),
    )
    for (const shown of ['first', 'third', 'none', 'x']) {
      compared.length = 0
      const found = findToken(known, shown.repeat(5))
      expect(found?.identity.name ?? 'none').toBe(shown === 'x' ? 'none' : shown)
      expect(compared).toEqual([
        [32, 32],
        [32, 32],
        [32, 32],
      ])
    }
  })

  test('nothing that is kept of a token gives it away', () => {
    const token = 'correct horse battery'
    const [known] = knownTokens([{ name: 'x', role: 'view', token }])
    expect(JSON.stringify(known)).not.toContain('horse')
  })

  test('no file of ours compares a token, a signature or a cookie in another way', () => {
    const folder = new URL('../../src/auth/', import.meta.url)
    for (const file of ['authenticator.ts', 'sessions.ts', 'tokens.ts', 'login-link.ts']) {
      const source = readFileSync(new URL(file, folder), 'utf8')
      const plain = source.match(
        /(token|signed|shown|signature\(.*\)|csrf|hash)\s*[!=]== (?!undefined)/g,
      )
      expect([file, plain]).toEqual([file, null])
    }
  })
})
