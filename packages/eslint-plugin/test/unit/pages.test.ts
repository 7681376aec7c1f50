/** The pages of the rules: of each, the code that it calls wrong is reported by that rule, and the rest is not. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import plugin from '../../src/index.ts'
import { lintCode } from '../support/lint-code.ts'

describe.each(Object.keys(plugin.rules))('docs/lint/%s.md', (name) => {
  const page = readFileSync(new URL(`../../../../docs/lint/${name}.md`, import.meta.url), 'utf8')
  const blocks = [...page.matchAll(/^## (.+)$|^```js\n([^]*?)^```$/gm)]
  let heading = ''
  const examples: [string, string][] = []
  for (const [, title, code] of blocks) {
    if (title !== undefined) heading = title
    if (code !== undefined) examples.push([heading, code])
  }

  test.each(examples)('%s', (title, code) => {
    const rules = lintCode(code).map(({ rule }) => rule)
    if (title === 'Wrong') expect(rules).toContain(name)
    else expect(rules).toEqual([])
  })

  test('shows both', () => {
    const titles = examples.map(([title]) => title)
    expect(titles).toContain('Wrong')
    expect(titles).toContain('Right')
  })
})
