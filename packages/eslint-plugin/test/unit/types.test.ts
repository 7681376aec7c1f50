/** With types the rules know clients that come from other files; without them they say nothing about these. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { expectedOf, found, lintCode } from '../support/lint-code.ts'

const project = fileURLToPath(new URL('../fixtures/typed', import.meta.url))
const code = readFileSync(`${project}/src/service.ts`, 'utf8')

test('a client of another file is known by its type', () => {
  const options = { filename: 'src/service.ts', typesFrom: project }
  expect(found(lintCode(code, options))).toEqual(expectedOf(code))
})

test('without types there is silence', () => {
  expect(found(lintCode(code))).toEqual([])
})
