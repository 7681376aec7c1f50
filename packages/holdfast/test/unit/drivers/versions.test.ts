import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { clients } from '../../../../../scripts/matrix/versions.ts'

test('docs/drivers.md names the versions that npm run test:matrix tries', () => {
  const page = readFileSync(new URL('../../../../../docs/drivers.md', import.meta.url), 'utf8')
  const [, section = ''] = /### Versions\n([^]*?)\n### /.exec(page) ?? []
  const rows = section.split('\n').filter((line) => /^\| (?!client|---)/.test(line))
  expect(rows).toEqual(clients.map(({ name, versions }) => `| ${name} | ${versions.join(', ')} |`))
})
