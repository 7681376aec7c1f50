import { expect, test } from 'vitest'
import { renderTable } from '../../src/render/table.ts'
import { plain } from '../../src/terminal/paint.ts'
import { cutText, padText, textWidth, wrapText } from '../../src/terminal/text-width.ts'

test.each([
  ['cart:7', 6],
  ['é', 1],
  ['世界', 4],
  ['👩', 2],
  ['', 0],
])('%j takes %i columns', (text, width) => expect(textWidth(text)).toBe(width))

test('what does not fit is cut, never in the middle of a character', () => {
  expect(cutText('abcdef', 4)).toBe('abc…')
  expect(cutText('abcdef', 6)).toBe('abcdef')
  expect(cutText('世界人', 4)).toBe('世…')
  expect(cutText('abc', 0)).toBe('')
  expect(padText('世', 4)).toBe('世  ')
})

test('words are wrapped; one that is too long has a line of its own', () => {
  expect(wrapText('aa bb cc', 5)).toEqual(['aa bb', 'cc'])
  expect(wrapText('a looooong b', 4)).toEqual(['a', 'looooong', 'b'])
})

test('a table is cut where it is widest, and no line is too long', () => {
  const rows = [
    { name: 'x'.repeat(60), amount: '12' },
    { name: 'short\u001B[2J', amount: '1' },
  ]
  const lines = renderTable(
    [
      { title: 'name', of: ({ name }) => name },
      { title: 'amount', of: ({ amount }) => amount, right: true },
    ],
    rows,
    { width: 30, paint: plain },
  )
  expect(lines).toEqual([
    'name                    amount',
    'xxxxxxxxxxxxxxxxxxxxx…      12',
    'short\\x1b[2J                 1',
  ])
})
