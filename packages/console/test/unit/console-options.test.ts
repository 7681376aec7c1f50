import { describe, expect, test } from 'vitest'
import { createConsole } from '../../src/server/create-console.ts'

function toldOf(more: object): { code?: unknown; message: string } {
  try {
    createConsole(more)
    return { message: 'nothing was thrown' }
  } catch (error) {
    return error as { code?: unknown; message: string }
  }
}

describe('U6: options of createConsole()', () => {
  const names = toldOf({ zzyzx: 1 }).message.split('there are ')[1]?.split(', ') ?? []

  test('are named when there is none like it', () => {
    expect(toldOf({ zzyzx: 1 })).toMatchObject({ code: 'OPTION_INVALID' })
    expect(names).toEqual(expect.arrayContaining(['driver', 'auth', 'actions', 'trustProxy']))
  })

  test.each(names)('%s is told when it is misspelt, or of another type', (name) => {
    const misspelt = toldOf({ [`${name[0]}${name}`]: 1 })
    expect(misspelt).toMatchObject({ code: 'OPTION_INVALID' })
    expect(misspelt.message).toContain(`did you mean ${name}?`)
    expect(toldOf({ [name]: Symbol('some') })).toMatchObject({ code: 'OPTION_INVALID' })
  })

  test.each([
    [{ auth: { token: [] } }, /auth\.token is no option here: did you mean tokens\?/],
    [{ auth: { idleMinutes: '30' } }, /auth\.idleMinutes must be a number/],
    [{ history: { minute: 1 } }, /history\.minute is no option here: did you mean minutes\?/],
    [{ redact: { key: true } }, /redact is true, false, or \{ keys, queries \}/],
  ])('%j', (more, message) => {
    expect(toldOf(more).message).toMatch(message)
  })
})
