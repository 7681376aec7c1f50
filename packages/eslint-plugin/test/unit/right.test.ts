/** Code as people write it: nothing of it is reported. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { found, lintCode } from '../support/lint-code.ts'

const folder = new URL('../fixtures/right/', import.meta.url)

describe('what is right is not reported', () => {
  test.each(readdirSync(folder))('%s', (file) => {
    const code = readFileSync(new URL(file, folder), 'utf8')
    expect(found(lintCode(code, { filename: `src/${file}` }))).toEqual([])
  })
})
