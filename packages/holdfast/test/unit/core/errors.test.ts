import { readdirSync, readFileSync } from 'node:fs'
import { channel } from 'node:diagnostics_channel'
import { describe, expect, onTestFinished, test } from 'vitest'
import { errorsPage } from '../../../../../scripts/errors-page.ts'
import { holdfastError } from '../../../src/core/errors.ts'
import {
  ContentionError,
  type ErrorCode,
  errorCodes,
  HoldfastError,
  isHoldfastError,
  UsageError,
} from '../../../src/errors.ts'

const codes = Object.keys(errorCodes) as ErrorCode[]
const root = new URL('../../../', import.meta.url)

function filesUnder(folder: string): string[] {
  return readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(new URL(`${folder}/${name}`, root), 'utf8'))
}

describe('the table', () => {
  test('equals the page docs/errors.md', () => {
    const page = readFileSync(new URL('../../docs/errors.md', root), 'utf8')
    expect(page).toBe(errorsPage())
    const headings = [...page.matchAll(/^### (.+)$/gm)].map((match) => match[1])
    expect(new Set(headings)).toEqual(new Set(codes))
  })

  /** A code nobody throws is a promise nobody keeps. `npm test` also records which were thrown. */
  test('holds exactly the codes named in src', () => {
    const sources = filesUnder('src').filter((source) => !source.includes('LOCK_ORDER: {'))
    const named = new Set(sources.flatMap((source) => source.match(/'[A-Z]+(?:_[A-Z]+)+'/g) ?? []))
    expect(codes.filter((code) => !named.has(`'${code}'`))).toEqual([])
  })

  test('says what happened and the next step, in sentences', () => {
    for (const { what, next } of Object.values(errorCodes)) {
      expect(what).toMatch(/^[A-Z].*\.$/)
      expect(next).toMatch(/^[A-Z].*\.$/)
    }
  })
})

describe('an error', () => {
  test('is of the class its code belongs to', () => {
    for (const code of codes) {
      const error = holdfastError(code)
      expect(error).toBeInstanceOf(HoldfastError)
      expect(error.name).toBe(errorCodes[code].class)
      expect(error.retryable).toBe(errorCodes[code].retryable)
    }
    expect(holdfastError('LOCK_TIMEOUT')).toBeInstanceOf(ContentionError)
    expect(holdfastError('LOCK_ORDER')).toBeInstanceOf(UsageError)
  })

  test('reads as code, subject, what happened, who, next step', () => {
    const blocker = { pid: 7, name: 'cart:1', ageMs: 1234.5, state: 'active', query: 'SELECT 1' }
    const { message } = holdfastError('LOCK_TIMEOUT', {
      about: 'cart',
      details: { subject: 'cart:1', names: ['cart:1'] },
      blockers: [blocker],
    })
    expect(message).toBe(
      'LOCK_TIMEOUT (cart): The lock was not granted within the limit. Blocked by pid 7, cart, for 1235 ms, active. See blockers for who holds it; retry later, raise wait, or shorten the holder.',
    )
  })

  test('is recognised across copies of the package, by brand and code', () => {
    const foreign = Object.assign(new Error('copy'), { code: 'LOCK_BUSY' })
    expect(isHoldfastError(foreign)).toBe(false)
    Object.defineProperty(foreign, Symbol.for('holdfast.error'), { value: true })
    expect(isHoldfastError(foreign, 'LOCK_BUSY')).toBe(true)
    expect(isHoldfastError(foreign, 'LOCK_TIMEOUT')).toBe(false)
  })

  test('is published as an event', () => {
    const seen: unknown[] = []
    const listen = (message: unknown): void => void seen.push(message)
    channel('holdfast:error').subscribe(listen)
    onTestFinished(() => {
      channel('holdfast:error').unsubscribe(listen)
    })
    const error = holdfastError('LOCK_BUSY')
    expect(seen).toEqual([{ code: 'LOCK_BUSY', error }])
  })
})
