import { expect, test } from 'vitest'
import { tokensOf } from '../../../../../scripts/mutants/sql/tokens.ts'

const textsOf = (sql: string): string[] => tokensOf(sql).map(({ text }) => text)

test('words in capitals, names and numbers as they are, signs as long as can be', () => {
  expect(textsOf(`select x.a<=1 - :"schema".f("B", 1.5)::int`)).toEqual(
    'SELECT X . A <= 1 - :"schema" . F ( "B" , 1.5 ) :: INT'.split(' '),
  )
  expect(textsOf('FOR i IN 1..n')).toEqual(['FOR', 'I', 'IN', '1', '..', 'N'])
})

test('comments are nothing, and a string is one token', () => {
  expect(textsOf('a -- b < c\n/* d /* e */ f */ g')).toEqual(['A', 'G'])
  expect(textsOf("'it''s < 1' E'\\'<\\n' '--'")).toEqual(["'it''s < 1'", "E'\\'<\\n'", "'--'"])
})

test('the body of a function is read, another dollar-quoted text is a string', () => {
  const tokens = tokensOf('SET x = 1 AS $$ a < $t$ b < c $t$ $$; SELECT $$ d < e $$')
  expect(tokens.map(({ text }) => text)).toEqual([
    'SET',
    'X',
    '=',
    '1',
    'AS',
    '$$',
    'A',
    '<',
    '$t$ b < c $t$',
    '$$',
    ';',
    'SELECT',
    '$$ d < e $$',
  ])
  expect(tokens.filter(({ body }) => body).map(({ text }) => text)).toEqual([
    'A',
    '<',
    '$t$ b < c $t$',
  ])
})

test('brackets and CASE are deeper, END IF and END LOOP are not their ends', () => {
  const depths = (sql: string): string =>
    tokensOf(sql)
      .map(({ depth }) => depth)
      .join('')
  expect(depths('f ( a [ 1 ] )')).toBe('0011210')
  expect(depths('CASE WHEN a THEN b END = c')).toBe('0111' + '1000')
  expect(depths('CASE x WHEN 1 THEN IF a THEN b ; END IF ; END CASE ; c')).toBe('01111111111110000')
})
