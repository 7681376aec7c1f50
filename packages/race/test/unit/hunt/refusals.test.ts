/** Answers with a status of 2xx that say no: as the user tells them, and as they are guessed. */
import { describe, expect, test } from 'vitest'
import type { Call } from '../../../src/hunt/model.ts'
import {
  createRefusals,
  guessRefusal,
  refusalRule,
  shapeOf,
} from '../../../src/hunt/edges/refusals.ts'
import { saidBy } from '../../../src/run/answer/said.ts'

const http = (body: unknown, status = 200): unknown => ({ status, body })

describe('what is told', () => {
  test.each([
    ['ok=false', { ok: false }, { ok: true }],
    ['ok = false', { ok: false }, { ok: 0 }],
    ['error.code=FULL', { error: { code: 'FULL' } }, { error: { code: 'OTHER' } }],
    ['error', { error: 'full' }, { error: null }],
    ['errors', { errors: [{}] }, { errors: [] }],
    ['booking=null', {}, { booking: {} }],
    ['.=sold out', 'sold out', 'sold'],
    ['$.rows.0=7', { rows: [7] }, { rows: [8] }],
    ['left=0', { left: 0 }, { left: 10 }],
  ])('%s', (text, refusal, acceptance) => {
    const { isRefusal } = refusalRule(text)
    for (const of of [(one: unknown) => one, http]) {
      expect([isRefusal(of(refusal)), isRefusal(of(acceptance))]).toEqual([true, false])
    }
  })

  test.each(['', '=false', '  '])('%j is no path', (text) => {
    expect(() => refusalRule(text)).toThrow(/a path into the answer and a value/)
  })
})

test.each([
  [{ ok: false }, 200, 'refused'],
  [{ success: false }, 201, 'refused'],
  [{ ok: true }, 200, 'accepted'],
  [{ ok: false }, 500, 'failed'],
])('without a word of the user %j with %i is %s', (body, status, said) => {
  expect(saidBy(http(body, status))).toBe(said)
})

describe('what is guessed', () => {
  test.each([
    ['what was true is false', [{ done: true, n: 1 }], { done: false, n: 1 }, 'done=false'],
    ['an error is there', [{ id: 1 }, { id: 2 }], { error: { code: 'x' } }, 'error'],
    ['what was there is null', [{ seat: { n: 1 } }], { seat: null }, 'seat=null'],
    ['what was there is missing', [{ seat: 4, at: 1 }], { at: 2 }, 'seat=null'],
    ['a word is another one', [{ is: 'booked' }, { is: 'booked' }], { is: 'full' }, 'is=full'],
    ['a text is another one', ['thank you'], 'sold out', '.=sold out'],
  ])('%s', (_, accepted, answer, text) => {
    const rule = guessRefusal(
      accepted.map((one) => http(one)),
      http(answer),
    )
    expect(rule?.text).toBe(text)
    expect(rule?.isRefusal(http(answer))).toBe(true)
    for (const one of accepted) expect(rule?.isRefusal(http(one))).toBe(false)
  })

  test.each([
    ['numbers', [{ id: 1, left: 4 }], { id: 2, left: 0 }],
    ['texts of chance', [{ token: 'a1b2' }], { token: 'c3d4' }],
    ['words that were never the same', [{ word: 'ant' }, { word: 'bee' }], { word: 'cat' }],
    ['nothing', [{ ok: true }], { ok: true }],
  ])('%s say nothing', (_, accepted, answer) => {
    expect(guessRefusal(accepted, answer)).toBeUndefined()
  })
})

test('a shape is what an answer says: status, fields, truth and, if asked, words', () => {
  const same = (one: unknown, other: unknown, words: 'words' | 'no words'): boolean =>
    shapeOf(one, words) === shapeOf(other, words)
  expect(same(http({ id: 1, list: [] }), http({ id: 2, list: [1] }), 'words')).toBe(true)
  expect(same(http({ id: 1 }), http({ id: 1 }, 201), 'words')).toBe(false)
  expect(same({ is: 'in' }, { is: 'out' }, 'words')).toBe(false)
  expect(same({ is: 'in' }, { is: 'out' }, 'no words')).toBe(true)
  expect(same({ ok: true }, { ok: false }, 'no words')).toBe(false)
})

describe('who is held to what', () => {
  const answering = (answer: unknown): Pick<Call, 'name' | 'send'> => ({
    name: 'take',
    send: async () => answer,
  })

  test('what was learned of one call is nothing to others', async () => {
    const { classify, held, learn } = createRefusals(undefined)
    learn('take', refusalRule('error'))
    const body = { error: 'full' }
    const input = { kind: 'arguments', values: [] } as const
    const mine = await held(answering({ ...body })).send(input)
    const theirs = await held({ ...answering({ ...body }), name: 'give' }).send(input)
    expect([classify({ answer: mine }), classify({ answer: theirs })]).toEqual([
      'refused',
      undefined,
    ])
    // What is no object is known again as well.
    learn('take', refusalRule('.=full'))
    expect(classify({ answer: await held(answering('full')).send(input) })).toBe('refused')
    expect(classify({ answer: await held(answering('done')).send(input) })).toBeUndefined()
  })

  test('the word of the user comes first, and ends the guessing', () => {
    const told = createRefusals(undefined, [refusalRule('full')])
    expect(told.classify({ answer: { full: true } })).toBe('refused')
    expect(told.isOpen({})).toBe(false)
    const own = createRefusals(() => 'accepted', [refusalRule('full')])
    expect(own.classify({ answer: { full: true } })).toBe('accepted')
    expect(createRefusals(() => undefined).isOpen({})).toBe(true)
  })
})
