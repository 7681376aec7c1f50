import { describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast } from '../../../src/index.ts'
import type { Quota } from '../../../src/quota/index.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { brokenInvariants } from '../../support/ledger-invariants.ts'

/** Names and amounts by whoever means ill: refused by a code, or stored exactly as they are. */
const fixture = ledgerFixture()

const quota = (name = 'hostile'): Quota<unknown, bigint> =>
  fixture.hf.quota({ name, limit: 2n ** 62n - 1n, per: 'lifetime', amounts: 'bigint' }) as Quota<
    unknown,
    bigint
  >

const texts: Readonly<Record<string, string>> = {
  quotes: `'"''""\`$$ $1 $body$`,
  'an injection': `'); DROP SCHEMA holdfast CASCADE; --`,
  backslashes: '\\ \\\\ \\n \\x41 \\" \\\' \\0',
  'array syntax': '{a,"b",NULL},{}',
  'null by name': 'NULL',
  'commas and braces': ',,{,},[,]',
  'line ends and tabs': 'a\nb\r\nc\td\u000b\u000c',
  'control characters': '\u0001\u0002\u001b[31m\u007f\u0085',
  blanks: '   ',
  'a byte order mark': '\ufeffa',
  'zero width': 'a\u200bb\u200d\u2060',
  'right to left': '\u202eabc\u202c \u05d0\u05d1',
  emoji: '👩‍👩‍👧‍👦🏴󠁧󠁢󠁥󠁮󠁧󠁿',
  'astral characters': '𝕳𝖔𝖑𝖉𝖋𝖆𝖘𝖙',
  'combining characters': 'e\u0301 Z\u0351\u036b\u0343',
  'the last code point': '\u{10ffff}\uffff\ufffe\ufffd',
  json: '{"key": [1, null]}',
  format: '%s %I %L %n ${x} #{y}',
  'a separator of ours': '3:abc3:abc3:abc',
  'a uuid': 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11',
  '512 bytes': 'é'.repeat(256),
}

interface Stored {
  readonly book: string
  readonly key: string
  readonly scope: string
  readonly operation_id: string
  readonly note: unknown
}

async function storedOf(operationId: string, key: string): Promise<Stored[]> {
  const { rows } = await fixture.observer.query<Stored>(
    `SELECT book, key, scope, operation_id, note FROM holdfast.movements
     WHERE operation_id = $1 AND key = $2`,
    [operationId, key],
  )
  return rows
}

describe('texts', () => {
  test.each(Object.entries(texts))(
    '%s: stored exactly, as key, scope, book, id and note',
    async (_, text) => {
      const own = fresh()
      const note = { [text]: text, deep: [{ [text]: null }] }
      const options = { operationId: `${text.slice(0, 100)}${own}`, scope: text, note }
      const hostile = quota(text)
      const first = await hostile.consume(text, 1, options)
      expect(first).toMatchObject({ ok: true, replayed: false })
      expect(await storedOf(options.operationId, text)).toEqual([
        { book: text, key: text, scope: text, operation_id: options.operationId, note },
      ])
      // And found again: alone, and in a statement with others.
      expect(await hostile.consume(text, 1, options)).toEqual({ ...first, replayed: true })
      const [again, other] = await Promise.all([
        hostile.consume(text, 1, options),
        hostile.consume(text, 2, { ...options, operationId: fresh() }),
      ])
      expect(again).toEqual({ ...first, replayed: true })
      expect(other).toMatchObject({ ok: true, replayed: false })
    },
  )

  test.each<[string, unknown]>([
    ['empty', ''],
    ['NUL', 'a\0b'],
    ['a lone high surrogate', 'a\ud800'],
    ['a lone low surrogate', '\udc00a'],
    ['surrogates in the wrong order', '\udc00\ud800'],
    ['513 bytes', 'a'.repeat(513)],
    ['few characters, many bytes', '𝕳'.repeat(129)],
    ['a megabyte', 'a'.repeat(1_048_576)],
    ['a fraction', 1.5],
    ['no number', Number.NaN],
    ['infinity', Number.POSITIVE_INFINITY],
    ['a number that is not exact', 2 ** 53],
  ])('%s: refused, wherever it stands', async (_, text) => {
    const refused = { code: 'LEDGER_NAME_INVALID' }
    const name = text as string
    await expect(quota().consume(name, 1, { operationId: fresh() })).rejects.toMatchObject(refused)
    const operation = { operationId: fresh() }
    if (typeof text === 'string') {
      expect(() => quota(name)).toThrow(expect.objectContaining(refused))
      await expect(
        quota().consume(fresh(), 1, { ...operation, scope: name }),
      ).rejects.toMatchObject(refused)
    }
    await expect(quota().consume(fresh(), 1, { operationId: name })).rejects.toMatchObject(refused)
    const refund = { ...operation, of: name }
    await expect(quota().refund(fresh(), 1, refund)).rejects.toMatchObject(refused)
  })

  test.each([undefined, null, {}, [], true, () => 'a', Symbol('a'), new Date()])(
    'what is no text at all is refused as an operation id: %s',
    async (value) => {
      const wrong = quota().consume(fresh(), 1, { operationId: value as unknown as string })
      await expect(wrong).rejects.toMatchObject({ code: 'LEDGER_NAME_INVALID' })
    },
  )

  test('a message never repeats what was given', async () => {
    const secret = `secret ${'x'.repeat(600)}`
    const error = await quota()
      .consume(secret, 1, { operationId: fresh() })
      .catch((reason: Error) => reason)
    expect((error as Error).message).not.toContain('secret')
  })

  test.each<[string, string, string]>([
    ['Latin and Cyrillic', 'admin', '\u0430dmin'],
    ['composed and decomposed', '\u00e9', 'e\u0301'],
    ['upper and lower case', 'Key', 'key'],
    ['with and without a blank', 'key', 'key '],
    ['with and without zero width', 'key', 'key\u200b'],
    ['full width', '1', '\uff11'],
    ['ligature', 'fi', '\ufb01'],
  ])('look-alikes are different accounts: %s', async (_, one, other) => {
    const prefix = fresh()
    await quota().consume(`${prefix}${one}`, 5, { operationId: fresh() })
    const verdict = await quota().consume(`${prefix}${other}`, 1, { operationId: fresh() })
    expect(verdict).toMatchObject({ ok: true, debited: 1n, sequence: 1n })
  })

  test('no two names share an account by the way they are put together', async () => {
    const parts = ['a', 'a1:b', '1:a', 'b', ':', '1', '1:', 'ab', '𝕳', '\ud835\udd73'.repeat(2)]
    const seen = new Set<string>()
    let used = 0
    for (const [book, key, scope] of parts.flatMap((one) =>
      parts.flatMap((two) => parts.slice(0, 3).map((three) => [one, two, three] as const)),
    )) {
      const verdict = await quota(book).consume(key, 1, {
        operationId: fresh(),
        scope: `${scope}!`,
      })
      used += 1
      expect(verdict).toMatchObject({ ok: true, sequence: 1n })
      seen.add(JSON.stringify([book, key, scope]))
    }
    expect(seen.size).toBe(used)
  })
})

describe("somebody else's", () => {
  test('operation id is no replay and no conflict: ids belong to scope and book', async () => {
    const [mine, theirs, operationId] = [fresh(), fresh(), fresh()]
    await quota().consume(mine, 5, { operationId })
    expect(await quota().consume(theirs, 6, { operationId })).toMatchObject({
      ok: true,
      replayed: false,
      debited: 6n,
    })
    expect(await quota('other').consume(mine, 7, { operationId })).toMatchObject({ debited: 7n })
  })

  test('operation cannot be refunded', async () => {
    const [mine, theirs, operationId] = [fresh(), fresh(), fresh()]
    await quota().consume(theirs, 5, { operationId })
    const refund = { operationId: fresh(), of: operationId }
    expect(await quota().refund(mine, 5, refund)).toMatchObject({ reason: 'not-found' })
    const borrowed = { ...refund, operationId: fresh(), scope: theirs }
    expect(await quota().refund(mine, 5, borrowed)).toMatchObject({ reason: 'not-found' })
  })

  test.each([
    '',
    'fff',
    '000-',
    fresh(),
    `ZZZ-${fresh()}`,
    `000-${fresh()}'`,
    `0000-${fresh()}`,
    'a\0',
  ])('hold id that is none is refused: %j', async (holdId) => {
    const refused = { code: 'LEDGER_NAME_INVALID' }
    await expect(quota().settle(holdId)).rejects.toMatchObject(refused)
    await expect(quota().release(holdId)).rejects.toMatchObject(refused)
    await expect(quota().extend(holdId, '1 s')).rejects.toMatchObject(refused)
  })

  test('hold id that nobody made is not found', async () => {
    expect(await quota().settle(`fff-${fresh()}`)).toMatchObject({ reason: 'not-found' })
  })
})

describe('amounts', () => {
  const wrong: readonly unknown[] = [
    0,
    -0,
    -1,
    0.5,
    1.000_000_1,
    2 ** 53,
    2 ** 63,
    -(2 ** 63),
    1e300,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    0n,
    -1n,
    2n ** 62n,
    2n ** 63n,
    2n ** 64n,
    '5',
    '1e3',
    '',
    null,
    undefined,
    true,
    [5],
    { valueOf: () => 5 },
    new Date(5),
  ]

  test.each(wrong)('%o is refused', async (value) => {
    const refused = { code: 'LEDGER_AMOUNT_INVALID' }
    const amount = value as number
    const operation = (): { operationId: string } => ({ operationId: fresh() })
    await expect(quota().consume(fresh(), amount, operation())).rejects.toMatchObject(refused)
    await expect(
      quota().hold(fresh(), amount, { ...operation(), ttl: '1 s' }),
    ).rejects.toMatchObject(refused)
    await expect(
      quota().refund(fresh(), amount, { ...operation(), of: fresh() }),
    ).rejects.toMatchObject(refused)
    const isZero = value === 0 || value === 0n
    const isAbsent = value === undefined
    if (isZero || isAbsent) return
    await expect(quota().settle(`fff-${fresh()}`, amount)).rejects.toMatchObject(refused)
  })

  test.each([1n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 62n - 2n, 2n ** 62n - 1n])(
    '%i is stored exactly',
    async (amount) => {
      const key = fresh()
      const verdict = await quota().consume(key, amount, { operationId: fresh() })
      expect(verdict).toMatchObject({
        ok: true,
        debited: amount,
        available: 2n ** 62n - 1n - amount,
      })
      const { rows } = await fixture.observer.query<{ debit: string }>(
        'SELECT debit FROM holdfast.movements WHERE key = $1',
        [key],
      )
      expect(rows).toEqual([{ debit: String(amount) }])
    },
  )

  test('a number that would not be exact is an error, never a rounded answer', async () => {
    const key = fresh()
    await quota().consume(key, 2n ** 53n + 1n, { operationId: fresh() })
    await fixture.hf.ledger.redeclare('hostile', { as: 'quota', per: 'lifetime' })
    const rounded = createHoldfast(fromPg(fixture.pool)).quota({
      name: 'hostile',
      limit: 2n ** 62n - 1n,
      per: 'lifetime',
    })
    await expect(rounded.consume(key, 1, { operationId: fresh() })).rejects.toMatchObject({
      code: 'LEDGER_AMOUNT_UNSAFE',
    })
  })

  test('sums that do not fit are refused, not wrapped', async () => {
    const key = fresh()
    const unlimited = quota()
    const operation = (): { operationId: string } => ({ operationId: fresh() })
    const all = 2n ** 62n - 1n
    const first = { operationId: fresh() }
    expect(await unlimited.consume(key, all, first)).toMatchObject({ ok: true, available: 0n })
    expect(
      await unlimited.refund(key, all, { ...operation(), of: first.operationId }),
    ).toMatchObject({
      ok: true,
      available: all,
    })
    expect(await unlimited.consume(key, 1, operation())).toMatchObject({
      ok: false,
      reason: 'too-large',
    })
  })
})

test('and nothing is broken', async () => {
  expect(await brokenInvariants(fixture.observer)).toEqual([])
})
