/**
 * Every command, with what goes wrong in a first hour: no URL, one that is none, nobody there, no schema, no rights, a
 * name that nobody knows. A failure says what happened and what to do next, on stderr, as one JSON document with
 * --json, and its exit code is not 0.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDatabase, sample, withClient } from '@holdfast/testkit'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { commands } from '../../src/commands/index.ts'
import { type Result, runCommand } from '../support/run-command.ts'
import { testDatabase } from '../../../holdfast/test/support/database.ts'

const id = '00000000-0000-4000-8000-000000000000'

/** Lines of every command that needs a database, and whether they need the schema. */
const lines: Readonly<Record<string, readonly (readonly [line: string, schema: boolean])[]>> = {
  migrate: [],
  plan: [],
  grants: [],
  init: [],
  skill: [],
  console: [],
  shards: [],
  doctor: [['doctor', false]],
  exec: [['exec --lock a -- true', true]],
  locks: [['locks', false]],
  top: [['top', false]],
  why: [['why 4711', false]],
  cancel: [['cancel 4711', false]],
  ledger: [
    ['ledger show books key', true],
    ['ledger books', true],
    ['ledger keys book', true],
    ['ledger usage book', true],
    ['ledger followers', true],
    ['ledger unfollow name', true],
    ['ledger redeclare book --as credits --new', true],
  ],
  holds: [['holds', true]],
  audit: [['audit', true]],
  maintain: [['maintain', true]],
  claims: [['claims', false]],
  jobs: [
    ['jobs', true],
    [`jobs show ${id}`, true],
    [`jobs retry ${id}`, true],
  ],
  leases: [['leases', true]],
  schedules: [
    ['schedules', true],
    ['schedules pause nightly', true],
    ['schedules pause nightly --yes', true],
  ],
}

const all = Object.values(lines).flat()
const ofDatabase = [...all.map(([line]) => line), 'migrate']
const ofSchema = all.flatMap(([line, schema]) => (schema ? [line] : []))

/** What names something that is not there, in a database where everything else is. */
const unknown = [
  'why 4711',
  'cancel 4711',
  'cancel 4711 --seen a-b --yes',
  'ledger show nowhere key',
  'ledger keys nowhere',
  'ledger usage nowhere',
  'ledger unfollow nobody',
  'ledger redeclare nowhere --as credits',
  'ledger redeclare nowhere --as credits --yes',
  'ledger unfollow nobody --yes',
  `jobs show ${id}`,
  `jobs retry ${id}`,
  `jobs retry ${id} --yes`,
  `jobs delete ${id} --yes`,
  'schedules list nowhere',
  'schedules pause nowhere',
  'schedules pause nowhere --yes',
  'schedules resume nowhere --yes',
  'schedules run nowhere --yes',
]

let folder: string
let installed: string
let empty: string
let powerless: string
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-cli-'))
  installed = (await testDatabase('installed')).directUrl
  empty = await createDatabase(inject('postgresUrl'))
  const url = new URL(installed)
  url.username = `powerless_${url.pathname.slice(6)}`
  await withClient(installed, (client) => client.query(`CREATE ROLE "${url.username}" LOGIN`))
  powerless = url.href
})
afterAll(() => rmSync(folder, { recursive: true }))

/** Words of the line; --json comes before what another command would get. */
async function said(line: string, asJson: boolean, url?: string): Promise<Result> {
  const [ours = '', ...rest] = line.split(' -- ')
  const words = [...ours.split(' '), ...(asJson ? ['--json'] : [])]
  const command = rest.length === 0 ? [] : ['--', ...rest.join(' -- ').split(' ')]
  return await runCommand(
    [...words, ...command],
    url === undefined ? {} : { DATABASE_URL: url },
    folder,
  )
}

/** The failure, once as JSON and once as text, which must say the same. */
async function failure(
  line: string,
  url?: string,
): Promise<{ readonly code: string; readonly exit: number; readonly text: string }> {
  const [json, text] = [await said(line, true, url), await said(line, false, url)]
  const about = `${line}: ${json.out}${json.err}${text.out}${text.err}`
  expect([about, json.out, text.out]).toEqual([about, '', ''])
  expect([about, text.code]).toEqual([about, json.code])
  expect(json.err).toMatch(/^\{.*\}\n$/)
  const { error } = JSON.parse(json.err) as { error: Record<string, string> }
  expect(error).toEqual({
    code: expect.stringMatching(/^[A-Z0-9_]+$/),
    message: expect.stringMatching(/\S/),
    next: expect.stringMatching(/\S/),
  })
  expect(text.err).not.toMatch(/^\s*\{/)
  expect(about).not.toContain('s3cret')
  return { code: error['code'] as string, exit: json.code, text: text.err }
}

/** Exit codes of exec are the command's own; ours are others. */
const failedBy = (line: string): number => (line.startsWith('exec') ? 125 : 1)

test('every command is here', () => {
  expect(Object.keys(lines).toSorted()).toEqual(commands.map(({ name }) => name).toSorted())
})

// A brief run has each command meet a third of them, not all of them the same.
describe('U12: every failure has a code and a next step, for people and for machines', () => {
  test.each(sample(ofDatabase))('%s: no URL', async (line) => {
    expect(await failure(line)).toMatchObject({ code: 'USAGE', exit: 2 })
  })

  test.each(sample(ofDatabase, 3, 1))('%s: a URL that is none', async (line) => {
    for (const [wrong, message] of [
      ['foo', /DATABASE_URL is no URL, it does not begin with postgres:\/\/\./],
      ['localhost/test', /DATABASE_URL is no URL/],
      ['u:s3cret@localhost/test', /DATABASE_URL is no URL/],
      ['db2://u:s3cret@localhost/test', /is not a URL of PostgreSQL, it begins with db2:/],
    ] as const) {
      const { code, exit, text } = await failure(line, wrong)
      expect([code, exit]).toEqual(['DATABASE_URL_INVALID', failedBy(line)])
      expect(text).toMatch(message)
      expect(text).toContain('Write the database URL as postgres://')
    }
  })

  test.each(sample(ofDatabase, 3, 2))('%s: nobody listens', async (line) => {
    const { code, exit, text } = await failure(line, 'postgres://u:s3cret@127.0.0.1:1/x')
    expect([code, exit]).toEqual(['ECONNREFUSED', failedBy(line)])
    expect(text).toContain('Check host and port')
  })

  /** Nothing to wait for: a person looks, and has mistyped it. */
  const atOnceMs = 2_000
  test.each(
    sample(ofDatabase).flatMap((line) => [
      [line, '127.0.0.1:1', 'ECONNREFUSED'] as const,
      [line, 'nowhere.invalid', 'ENOTFOUND'] as const,
    ]),
  )('%s: a wrong host, %s, is told at once', async (line, host, code) => {
    const began = performance.now()
    const { err } = await said(line, true, `postgres://u:s3cret@${host}/x`)
    const passedMs = performance.now() - began
    expect(JSON.parse(err)).toMatchObject({ error: { code } })
    expect(err).not.toContain('s3cret')
    expect(passedMs).toBeLessThan(atOnceMs)
  })

  test.each(sample(ofSchema, 3, 1))('%s: no schema', async (line) => {
    const { code, exit, text } = await failure(line, empty)
    expect([code, exit]).toEqual(['SCHEMA_MISSING', failedBy(line)])
    expect(text).toContain('holdfast migrate')
  })

  test.each(sample(ofSchema, 3, 2))('%s: no rights', async (line) => {
    const { exit, text } = await failure(line, powerless)
    expect(exit).toBe(failedBy(line))
    expect(text).toContain('holdfast grants')
  })

  test.each(unknown)('%s: nobody knows it', async (line) => {
    const { code, exit } = await failure(line, installed)
    const told = line.startsWith('schedules') ? 'OBSERVE_NO_SUCH_SCHEDULE' : 'NOT_FOUND'
    expect([line, code, exit]).toEqual([line, told, 1])
  })
})

describe('what works prints one JSON document', () => {
  test.each(ofDatabase.filter((line) => !unknown.includes(line) && !line.startsWith('exec')))(
    '%s',
    async (line) => {
      if (/show|keys|usage|unfollow|pause/.test(line)) return
      const { out, err } = await said(line, true, installed)
      expect([line, err]).toEqual([line, ''])
      expect(JSON.parse(out)).toBeTypeOf('object')
    },
  )
})

describe('U12: what was probably meant', () => {
  test.each([
    ['migarte', 'Did you mean migrate?'],
    ['lock', 'Did you mean locks?'],
    ['leassed', 'Did you mean leases?'],
    ['doctor --rol=x', 'Did you mean --role?'],
    ['grants --shcema x', 'Did you mean --schema?'],
  ])('%s', async (line, meant) => {
    const json = await runCommand([...line.split(' '), '--json'])
    expect(json.code).toBe(2)
    const { error } = JSON.parse(json.err) as { error: { message: string } }
    expect(error.message).toContain(meant)
    expect((await runCommand(line.split(' '))).err).toContain(meant)
  })

  test('nothing, where nothing is near', async () => {
    expect((await runCommand(['frobnicate'])).err).not.toContain('Did you mean')
    expect((await runCommand(['locks', '--frobnicate'])).err).not.toContain('Did you mean')
  })
})
