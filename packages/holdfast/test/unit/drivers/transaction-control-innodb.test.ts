import { expect, test } from 'vitest'
import { controlIn, isOpaque } from '../../../src/engines/innodb/tx/transaction-control.ts'

test.each(['/*!50000COMMIT*/', '/*M!100100COMMIT*/', '--\u0001 note\nCOMMIT'])(
  'what stands at the end of a comment is read: %j',
  (text) => {
    expect(controlIn(text)).toBe('end')
  },
)

test('a procedure that is called in a comment may do what is not read', () => {
  expect(isOpaque('/*!50000CALL ends()*/')).toBe(true)
})

// Two minus signs without a blank are no comment.
test('control: what is no comment hides nothing', () => {
  expect(controlIn('SELECT 1 --1; COMMIT')).toBe('end')
  expect(controlIn("SELECT 'x/*!50000COMMIT*/'")).toBeUndefined()
})
