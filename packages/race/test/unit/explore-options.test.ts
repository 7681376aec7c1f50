import { describe, expect, test } from 'vitest'
import {
  assertRaceFree,
  explainRace,
  explore,
  type FormatOptions,
  formatReport,
  htmlReport,
  instrument,
  jsonReport,
  mermaidReport,
  type PgModule,
  type RaceFreeOptions,
  record,
  type Report,
} from '../../src/index.ts'
import { greenReport } from '../support/reports.ts'

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
    [{ oracle: { table: ['t'] } }, /oracle\.table is no option here: did you mean tables\?/],
    [{ oracle: { tables: 't' } }, /oracle\.tables must be a list of one or more names/],
    [
      { oracle: { tables: [] } },
      /oracle\.tables must be .* \(to compare no table: oracle: false, and an invariant\)/,
    ],
    [{ oracle: { ignore: 'n' } }, /oracle\.ignore must be a list of names/],
    [{ oracle: { ignore: [1] } }, /oracle\.ignore must be a list of names/],
    [{ crash: { recovery: flow } }, /crash\.recovery is no option here: did you mean recover\?/],
    [{ crash: { recover: true } }, /crash\.recover must be a function/],
    [
      { symmetric: ['a', 'b'] },
      /symmetric must be true or false, or a list of groups, each a list/,
    ],
    [{ flows: { a: flow, b: 3 } }, /flows\.b must be a function/],
    [{ flows: { a: flow, b: Promise.resolve() } }, /flows\.b must be a function/],
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

describe('what is no report', () => {
  const taking = {
    formatReport,
    htmlReport,
    jsonReport,
    mermaidReport,
    explainRace,
    assertRaceFree,
  }
  test.each(Object.entries(taking))('is refused by %s', (name, take) => {
    for (const given of [undefined, {}, 'x', Promise.resolve(), { verdict: 'race' }]) {
      const refusal = new RegExp(
        `${name}\\(\\) needs a report of explore\\(\\); was an await forgotten\\?`,
      )
      expect(() => take(given as unknown as Report)).toThrow(refusal)
    }
  })
})

test('options of formatReport() and assertRaceFree()', () => {
  const wide = { columns: 'wide' } as unknown as FormatOptions
  expect(() => formatReport(greenReport(), wide)).toThrow(/columns must be a number/)
  const bound = { bound: true } as RaceFreeOptions
  expect(() => assertRaceFree(greenReport(), bound)).toThrow(
    /bound is no option here: there are bounded/,
  )
})

test('instrument() without pg is refused', () => {
  for (const given of [{}, undefined, { Pool: class {} }]) {
    const pg = given as unknown as PgModule
    expect(() => instrument(pg)).toThrow(/instrument\(\) needs the module pg: import pg from 'pg'/)
  }
})

test('record() without a flow is refused', async () => {
  const given = { url: right.url } as Parameters<typeof record>[0]
  await expect(record(given)).rejects.toMatchObject({
    code: 'OPTION_INVALID',
    message: 'flow must be a function',
  })
})
