import { describe, expect, test } from 'vitest'
import { cleanJson, cleanLines, cleanText } from '../../src/terminal/clean-text.ts'
import { hostile } from '../support/lock-trees.ts'

/** Anything a terminal could act on. */
const dangerous = /[\p{Cc}\u200B-\u200F\u2028-\u202E\u2066-\u2069]/u

describe('what others wrote', () => {
  test('is one line without anything a terminal acts on, and nothing of it is lost', () => {
    expect(hostile).toMatch(dangerous)
    expect(cleanText(hostile)).not.toMatch(dangerous)
    expect(cleanText(hostile)).toBe('\\x1b[2J\\x1b]0;owned\\x07\\x9b31m\\u202egnp.exe DROP\\u200b')
    expect(cleanText('\uD800x\u{E0041}')).toBe('\\ud800x\\u{e0041}')
  })

  test('keeps its lines where they are ours', () => {
    expect(cleanLines('a\u001B[1mb\n\tc')).toBe('a\\x1b[1mb\n\tc')
  })

  test('means the same as JSON', () => {
    const json = cleanJson({ name: hostile })
    expect(json).not.toMatch(dangerous)
    expect(JSON.parse(json)).toEqual({ name: hostile })
  })

  test.each(['cart:7', 'Grüße, 世界 👩‍👩‍👧 é', 'row of public."my table"'])(
    'is left alone where it is harmless: %s',
    (text) => expect(cleanText(text).replaceAll('\\u200d', '\u200D')).toBe(text),
  )
})
