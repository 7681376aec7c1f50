import { describe, expect, test } from 'vitest'
import { explore } from '../../src/explore.ts'
import { record } from '../../src/record.ts'

/** Nobody connects: port 1 has no server. */
const right = { url: 'postgres://localhost:1/nowhere', flows: { a: flow, b: flow } }

async function flow(): Promise<void> {}

async function toldOf(more: object): Promise<{ code?: unknown; message: string }> {
  return (await explore({ ...right, ...more }).catch((error: unknown) => error)) as never
}

describe('U6: options of explore()', () => {
  test('are named when there is none like it', async () => {
    const { code, message } = await toldOf({ zzyzx: 1 })
    expect(code).toBe('OPTION_INVALID')
    expect(message).toMatch(/^zzyzx is no option here: there are name, url, seed, /)
  })

  test('are told when they are misspelt, or of another type', async () => {
    const names = (await toldOf({ zzyzx: 1 })).message.split('there are ')[1]?.split(', ') ?? []
    expect(names).toContain('onProgress')
    for (const name of names) {
      const misspelt = await toldOf({ [`${name[0]}${name}`]: 1 })
      expect(misspelt).toMatchObject({ code: 'OPTION_INVALID' })
      expect(misspelt.message).toContain(`did you mean ${name}?`)
      const typed = await toldOf({ [name]: Symbol('some') })
      expect(typed).toMatchObject({ code: 'OPTION_INVALID' })
      expect(typed.message).toMatch(new RegExp(`^${name} must be`))
    }
  })

  test.each([
    [{ budget: { schedule: 1 } }, /budget\.schedule is no option here: did you mean schedules\?/],
    [{ budget: { ms: '2 s' } }, /budget\.ms must be a number, 0 or more/],
    [{ deadlocks: 'failed' }, /deadlocks must be 'report' or 'fail'/],
    [{ flows: undefined }, /two or more flows/],
    [{ url: undefined }, /is DATABASE_URL set\?/],
  ])('%j', async (more, message) => {
    expect((await toldOf(more)).message).toMatch(message)
  })
})

test('U6: options of record()', async () => {
  const given = { url: right.url, flow, seeds: flow }
  await expect(record(given)).rejects.toMatchObject({
    code: 'OPTION_INVALID',
    message: 'seeds is no option here: did you mean seed?',
  })
})
