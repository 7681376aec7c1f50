import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { assertRaceFree } from '../../src/assert-race-free.ts'
import type { Report } from '../../src/core/model.ts'
import '../../src/vitest.ts'
import * as made from '../support/reports.ts'

const green = made.greenReport()
const bounded = made.greenReport({ verdict: 'bounded' })
const vacuous = made.greenReport({
  verdict: 'vacuous',
  coverage: { ...made.coverage, overlapped: false },
})
const inconclusive = made.greenReport({
  verdict: 'inconclusive',
  trouble: { kind: 'hung-flow', message: 'bob does not end.' },
})

describe('toBeRaceFree', () => {
  test('accepts an exhaustive search that found nothing', () => {
    expect(green).toBeRaceFree()
  })

  test.each([
    ['a race', made.quota, /✗ race in upload[\s\S]*overtaken by \(6\)[\s\S]*HOLDFAST_RACE_REPLAY=/],
    ['flows that never met', vacuous, /VACUOUS/],
    [
      'a search that ran out',
      bounded,
      /within the budget[\s\S]*toBeRaceFree\(\{ bounded: true \}\)/,
    ],
    ['no verdict', inconclusive, /bob does not end/],
  ])('refuses %s, and says it', (_, report, message) => {
    expect(() => expect(report).toBeRaceFree()).toThrow(message)
    expect(report).not.toBeRaceFree()
  })

  test('a bounded search is enough where that is said', () => {
    expect(bounded).toBeRaceFree({ bounded: true })
    expect(made.quota).not.toBeRaceFree({ bounded: true })
    expect(vacuous).not.toBeRaceFree({ bounded: true })
  })

  test('says so when it got a promise', () => {
    expect(() => expect(Promise.resolve(green)).toBeRaceFree()).toThrow(/was an await forgotten/)
  })
})

describe('toHaveRace', () => {
  test('looks at rule, name and explanation', () => {
    expect(made.quota).toHaveRace()
    expect(made.quota).toHaveRace(/101 uploads/)
    expect(made.quota).toHaveRace('check-then-insert')
    expect(made.quota).toHaveRace(/bob's COMMIT \(6\) added to it before alice wrote/)
  })

  test('refuses another race, and none', () => {
    expect(() => expect(made.quota).toHaveRace(/deadlock/)).toThrow(
      /matches \/deadlock\/[\s\S]*✗ race/,
    )
    expect(() => expect(green).toHaveRace()).toThrow(/Wanted: a race[\s\S]*no race in/)
    expect(() => expect(made.quota).not.toHaveRace()).toThrow(/Not wanted/)
  })
})

describe('without matchers', () => {
  test('assertRaceFree throws the timeline', () => {
    expect(() => assertRaceFree(green)).not.toThrow()
    expect(() => assertRaceFree(made.deadlock)).toThrow(/deadlock in transfer/)
    expect(() => assertRaceFree(bounded)).toThrow(/budget/)
    expect(() => assertRaceFree(bounded, { bounded: true })).not.toThrow()
  })

  test('the error of assertRaceFree names the test and not this library', () => {
    const error = (() => {
      try {
        assertRaceFree(made.quota)
      } catch (thrown) {
        return thrown as Error
      }
      return undefined
    })()
    expect(error?.name).toBe('RaceError')
    expect(error?.stack).not.toContain('assert-race-free.ts')
  })
})

describe('a page for every failure', () => {
  const folder = mkdtempSync(join(tmpdir(), 'race-pages-'))
  const { failure } = made.quota
  const broken = (message: string): Report => ({
    ...made.quota,
    ...(failure && { failure: { ...failure, message } }),
  })
  const pages = (): string[] =>
    existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.html')) : []

  beforeEach(() => {
    vi.stubEnv('HOLDFAST_RACE_OUT', folder)
    vi.stubEnv('GITHUB_ACTIONS', 'true')
  })
  afterEach(() => {
    vi.unstubAllEnvs()
    vi.restoreAllMocks()
    rmSync(folder, { recursive: true, force: true })
  })

  test('is left in HOLDFAST_RACE_OUT, and the lines are told to GitHub', () => {
    const written = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
    expect(() => expect(made.quota).toBeRaceFree()).toThrow(
      /upload-within-the-quota-[0-9a-f]{8}\.html/,
    )
    const [page = ''] = pages()
    expect(readFileSync(join(folder, page), 'utf8')).toMatch(/^<!doctype html>/)
    expect(written.mock.calls.join('\n')).toContain('::error')
  })

  test.each<[string, () => void]>([
    ['not.toBeRaceFree', () => expect(made.quota).not.toBeRaceFree()],
    ['toHaveRace', () => expect(made.quota).toHaveRace(/check-then-insert/)],
    ['not.toHaveRace', () => expect(green).not.toHaveRace()],
    ['toBeRaceFree', () => expect(green).toBeRaceFree()],
  ])('an assertion that holds leaves nothing: %s', (_, holds) => {
    const written = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
    holds()
    expect(pages()).toEqual([])
    expect(written.mock.calls.join('\n')).not.toContain('::')
  })

  test('is one for each finding, whatever they are called', () => {
    vi.spyOn(process.stdout, 'write').mockReturnValue(true)
    for (const rule of ['rule one', 'rule two', 'rule one']) {
      expect(() => assertRaceFree(broken(rule))).toThrow(rule)
    }
    expect(pages()).toHaveLength(2)
  })
})

test('jest: adds itself to the global expect, and says so when there is none', () => {
  const jest = new URL('../../src/jest.ts', import.meta.url).href
  const run = (script: string): string =>
    spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' }).stdout
  const extended = `globalThis.expect = { extend: (all) => console.log(Object.keys(all).join()) }
    await import(${JSON.stringify(jest)})`
  expect(run(extended)).toBe('toBeRaceFree,toHaveRace\n')
  const without = `await import(${JSON.stringify(jest)}).catch((error) => console.log(error.message))`
  expect(run(without)).toMatch(/no global expect/)
})
