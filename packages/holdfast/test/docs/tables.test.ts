/** Tables of the pages that repeat what the sources or other suites say: they must not drift. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { packageRoot, readManifest } from '../../../../scripts/package/entries.ts'
import { channels } from '../../src/core/events.ts'
import { errorCodes } from '../../src/errors.ts'
import {
  claimSeverities,
  driftSeverities,
  ownCodes,
  schemaSeverities,
} from '../../src/health/finding.ts'
import { forms } from '../server-behaviour/support/snapshot-forms.ts'
import { type Block, type Page, readPages } from './checks/pages.ts'
import { codeIn, tableOf } from './checks/tables.ts'
import { openWorkshop } from './checks/workshop.ts'

const pages = new Map(readPages().map((page) => [page.path, page]))
const page = (path: string): Page => pages.get(path) as Page

test('events.md lists every channel and no other', () => {
  const listed = tableOf(page('docs/events.md'), 'channel').map(([name = '']) => codeIn(name))
  expect(listed.toSorted()).toEqual(
    Object.values(channels)
      .map(({ name }) => String(name))
      .toSorted(),
  )
})

test('drivers.md and AGENTS.md name every client that there is a driver for', () => {
  const { exports } = readManifest(packageRoot('holdfast'))
  const all = Object.keys(exports).flatMap((entry) => entry.split('./drivers/')[1] ?? [])
  // Those of the other products have pages of their own.
  const pagesOfOthers = ['docs/mysql.md', 'docs/sqlite.md'].map((path) => page(path).text)
  const onPage = all.filter((name) =>
    pagesOfOthers.some((text) => new RegExp(`holdfast/drivers/${name}(?![\\w-])`).test(text)),
  )
  expect(onPage.toSorted()).toEqual([
    'better-sqlite3',
    'drizzle-mysql',
    'drizzle-sqlite',
    'kysely-mysql',
    'kysely-sqlite',
    'mariadb',
    'mysql2',
    'node-sqlite',
    'typeorm-mysql',
  ])
  const drivers = all.filter((name) => !onPage.includes(name))
  const clients = tableOf(page('docs/drivers.md'), 'client').map(([name = '']) => name)
  const plain = (name: string): string => name.toLowerCase().replaceAll(/[^a-z]/g, '')
  expect(clients.map(plain).toSorted()).toEqual(drivers.map(plain).toSorted())
  const agents = readFileSync(new URL('AGENTS.md', packageRoot('holdfast')), 'utf8')
  const [, named = ''] = /the client that the project already has \(([^)]+)\)/.exec(agents) ?? []
  expect(named.split(/,\s+/).toSorted()).toEqual(clients.toSorted())
})

test('doctor.md lists every code with its group and severity, and no other', () => {
  const own = Object.entries(ownCodes).map(([code, [group, severity]]) => [group, code, severity])
  const ofSchema = Object.entries(schemaSeverities).map(([code, severity]) => [
    code.startsWith('role-') ? 'role' : 'schema',
    code,
    severity,
  ])
  const drift = Object.entries(driftSeverities).map(([kind, severity]) => [
    'schema',
    `*-${kind}`,
    severity,
  ])
  const claims = Object.entries(claimSeverities).map(([code, severity]) => [
    'claims',
    code,
    severity,
  ])
  const all = [...own, ...ofSchema, ...drift, ...claims, ['any', 'not-checked', 'note']]
  const listed = tableOf(page('docs/doctor.md'), 'group').map(
    ([group, code = '', severity, what, fix]) => {
      expect([what, fix]).not.toContain('')
      return [group, codeIn(code), severity]
    },
  )
  expect(listed.map(String).toSorted()).toEqual(all.map(String).toSorted())
})

test.each([
  'packages/holdfast/AGENTS.md',
  'packages/holdfast/skills/holdfast/references/choose.md',
])('%s tells which call to use as which-one.md does', (path) => {
  const decisions = (of: string): string[][] =>
    tableOf(page(of), 'what must not happen').map((row) =>
      row.map((cell) => cell.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')),
    )
  expect(decisions('docs/which-one.md').length).toBeGreaterThan(10)
  expect(decisions(path)).toEqual(decisions('docs/which-one.md'))
})

test('isolation.md says of snapshots what the server-behaviour suite pins', () => {
  const pinned = new Map(forms.map((form) => [form.name, Object.values(form.expected)]))
  const told = tableOf(page('docs/isolation.md'), 'form')
  expect(told.length).toBeGreaterThan(10)
  for (const [name = '', ...cells] of told) expect([name, cells]).toEqual([name, pinned.get(name)])
})

test('the README makes every driver as it has to be made', async () => {
  const blocks = tableOf(page('README.md'), 'client').map(([, from = '', make = ''], at): Block => {
    const name = codeIn(from)
    const call = codeIn(make)
    const code = `import { ${call.split('(')[0]} } from '${name}'\nexport const made = createHoldfast(${call})`
    return { page: name, line: at, language: 'ts', flags: [], notes: new Map(), code }
  })
  expect(blocks).toHaveLength(9)
  using workshop = openWorkshop(blocks)
  expect(await workshop.typeErrors()).toEqual([])
  const [first] = blocks as [Block]
  using broken = openWorkshop([{ ...first, code: first.code.replace('(pool)', '(pool, 1)') }])
  expect(await broken.typeErrors()).toHaveLength(1)
})

describe('codes that pages name', () => {
  const known = new Set(Object.keys(errorCodes))
  /** A code is a link to its entry or stands in backticks; both must be real. */
  const unknown = (text: string): string[] =>
    [
      ...text.matchAll(
        /`((?:LOCK|ROWS|TX|ENGINE|DRIVER|COMMIT|CONNECTION|SELF_TEST|SCHEMA)_[A-Z_]+)`/g,
      ),
    ]
      .map(([, code]) => code as string)
      .filter((code) => !known.has(code))

  test.each([...pages.values()].map(({ path, text }) => [path, text]))('%s', (_, text) => {
    expect(unknown(text)).toEqual([])
  })

  test('are found out when they do not exist', () => {
    expect(unknown('see `LOCK_TIMEOUT` and `LOCK_GONE`')).toEqual(['LOCK_GONE'])
  })
})

test('a table that is not there is an error', () => {
  expect(() => tableOf(page('README.md'), 'no such column')).toThrow(/no table/)
})
