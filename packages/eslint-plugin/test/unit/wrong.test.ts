/** Code that is wrong: each line that says so is reported, and no other. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { expectedOf, found, lintCode } from '../support/lint-code.ts'

const folder = new URL('../fixtures/wrong/', import.meta.url)
const files = readdirSync(folder)

describe('what is wrong is found', () => {
  test.each(files)('%s', (file) => {
    const code = readFileSync(new URL(file, folder), 'utf8')
    expect(expectedOf(code).length).toBeGreaterThan(0)
    expect(found(lintCode(code))).toEqual(expectedOf(code))
  })
})
