/** `hunt -- <command>` as a process, from the sources: what is recorded, what is proven, and how it ends. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { sample, withClient } from '@holdfast/testkit'
import { afterAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { JsonHunt } from '../../../src/hunt.ts'
import { type Ended, runHuntProcess } from '../../support/hunt-process.ts'

const path = (from: string): string => fileURLToPath(new URL(from, import.meta.url))
const main = path('../../../src/main.ts')
const hunted = path('../../support/hunted/')
const app = join(hunted, 'app.ts')
const suite = ['node', '--test', join(hunted, 'suite-node.ts')]
const { directUrl: url } = await testDatabase()
const folder = mkdtempSync(join(tmpdir(), 'race-command-'))
afterAll(() => rmSync(folder, { recursive: true }))

const hunt = (args: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<Ended> =>
  runHuntProcess(args, { DATABASE_URL: url, TMPDIR: folder, ...environment })

async function verdictsOf(
  args: readonly string[],
  command: readonly string[],
  environment?: NodeJS.ProcessEnv,
): Promise<Ended & { readonly verdicts: Record<string, string>; readonly json: JsonHunt }> {
  const file = join(folder, 'hunt.json')
  rmSync(file, { force: true })
  const ended = await hunt(['--app', app, '--json', file, ...args, '--', ...command], environment)
  let json: JsonHunt
  try {
    json = JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    throw new Error(`no report, ${ended.code}:\n${ended.out}\n${ended.err}`)
  }
  return {
    ...ended,
    json,
    verdicts: Object.fromEntries(json.pairs.map(({ name, verdict }) => [name, verdict])),
  }
}

const racy = { 'POST /coupons × itself': 'proven', 'POST /cards × itself': 'refuted' }
const fixed = { 'POST /coupons × itself': 'refuted', 'POST /cards × itself': 'refuted' }

const rowsOf = (): Promise<unknown> =>
  withClient(url, async (client) => (await client.query('TABLE coupons')).rows)

describe('of a suite that passes', () => {
  test('node --test: the race is proven, the look-alike refuted, and nothing is left', async () => {
    const { code, out, err, verdicts, json } = await verdictsOf([], suite)
    expect(verdicts).toEqual(racy)
    expect(code).toBe(1)
    expect(json.pairs[0]?.from).toEqual(['the rows after it ran 5 times'])
    expect(out).toContain('✗ POST /coupons × itself')
    expect(out).toContain('app.ts:')
    expect(err).toMatch(/hunt: 2 calls recorded[\s\S]*hunt: pair \d of 2/)
    // As the suite has left them.
    expect(await rowsOf()).toEqual([{ code: 'A', uses: 1, most: 6 }])
    expect(readdirSync(folder).filter((name) => name.startsWith('holdfast-hunt'))).toEqual([])
  })

  test('the control: the same without the race is 0', async () => {
    const { code, verdicts } = await verdictsOf([], suite, { COUPONS: 'fixed' })
    expect(verdicts).toEqual(fixed)
    expect(code).toBe(0)
  })

  test.each(sample(['forks', 'threads']))('vitest with %s', async (pool) => {
    const vitest = path('../../../../../node_modules/vitest/vitest.mjs')
    const { code, verdicts } = await verdictsOf(
      [],
      ['node', vitest, 'run', '--root', hunted, '--pool', pool],
    )
    expect(verdicts).toEqual(racy)
    expect(code).toBe(1)
  })

  test('a step that is no request is called by its name', async () => {
    const { verdicts } = await verdictsOf(['--only', 'expire'], suite, { WITH_CALL: '1' })
    expect(verdicts).toEqual({
      'POST /coupons × itself': 'not looked at',
      'POST /cards × itself': 'not looked at',
      'POST /coupons × expire coupons': 'refuted',
      'expire coupons × itself': 'refuted',
    })
  })

  test('--functions atomic decides what a function runs inside, and says so', async () => {
    const inFunction = { CARDS: 'function' }
    const open = await verdictsOf([], suite, inFunction)
    expect(open.verdicts).toMatchObject({ 'POST /cards × itself': 'undecided' })
    expect(open.out).toContain('--functions atomic')
    const { verdicts, out, json } = await verdictsOf(['--functions', 'atomic'], suite, inFunction)
    expect(verdicts).toEqual(racy)
    expect(out.replaceAll(/\s+/g, ' ')).toMatch(
      /note functions: 'atomic': .* POST \/cards × itself/,
    )
    expect(json.functions).toBe('atomic')
  })

  test('a bank that is gone answers from the recording', async () => {
    const { verdicts } = await verdictsOf([], suite, { WITH_BANK: '1' })
    expect(verdicts).toEqual(racy)
  })

  test('the control: with --elsewhere send it is asked, and the call is in no pair', async () => {
    const { json } = await verdictsOf(['--elsewhere', 'send'], suite, { WITH_BANK: '1' })
    const coupons = json.calls.find(({ name }) => name === 'POST /coupons')
    expect(coupons?.unusable).toMatch(/fail/)
  })
})

test('--only that fits no name decides nothing, and says so by its code, in one line', async () => {
  const { code, verdicts, out } = await verdictsOf(['--only', 'nothing of it'], suite)
  expect(out).toContain('2 pairs left out by --only nothing of it\n')
  expect(out).not.toContain('POST /coupons')
  expect(Object.values(verdicts)).toEqual(['not looked at', 'not looked at'])
  expect(code).toBe(4)
})

describe('stopped while it proves', () => {
  test.each([
    ['SIGINT', 'all of its processes', 130],
    ['SIGTERM', 'it alone', 143],
  ] as const)('by %s to %s, the rows are put back', async (signal, whom, expected) => {
    let isStopped = false
    const ended = await runHuntProcess(
      ['--app', app, '--', ...suite],
      { DATABASE_URL: url, TMPDIR: folder },
      (told, { pid = 0 }) => {
        if (isStopped || !told.includes('hunt: pair')) return
        isStopped = true
        process.kill(whom === 'it alone' ? pid : -pid, signal)
      },
    )
    expect(ended).toMatchObject({ code: expected })
    expect(ended.err).toContain(`${signal}. The exploration was stopped; rows and sequences are as`)
    expect(await rowsOf()).toEqual([{ code: 'A', uses: 1, most: 6 }])
    const kept = await withClient(url, (client) =>
      client.query(`SELECT to_regnamespace('holdfast_race_kept') AS kept`),
    )
    expect(kept.rows).toEqual([{ kept: null }])
  })
})

test('an application that ends at once when it is told to waits until the rows are put back', async () => {
  let isStopped = false
  const { code, err } = await runHuntProcess(
    ['--app', app, '--', ...suite],
    { DATABASE_URL: url, TMPDIR: folder, ENDS_AT_ONCE: '1' },
    (told, { pid = 0 }) => {
      if (isStopped || !told.includes('hunt: pair')) return
      isStopped = true
      process.kill(pid, 'SIGTERM')
    },
  )
  expect(err).toContain('SIGTERM. The exploration was stopped; rows and sequences are as')
  expect(code).toBe(143)
  expect(await rowsOf()).toEqual([{ code: 'A', uses: 1, most: 6 }])
})

describe('the environment of what was recorded', () => {
  const shell = (text: string): readonly string[] => [
    'sh',
    '-c',
    text.replaceAll('suite', suite.join(' ')),
  ]

  test('calls of processes with another one are told by the names of the variables', async () => {
    const { json } = await verdictsOf([], shell('CLOSED=unreadable suite; suite'))
    const coupons = json.calls.filter(({ name }) => name === 'POST /coupons')
    expect(coupons.map(({ said }) => said)).toEqual(['refused', 'accepted'])
    expect(coupons[1]?.unusable).toMatch(/variables of the environment were others.*: CLOSED$/)
    expect(JSON.stringify(json)).not.toContain('unreadable')
    // The control: those of the first process are as they were.
    expect(coupons[0]?.unusable).toBe('it sends no statement')
  })

  test('--keep keeps what the suite has set, and of secrets the names', async () => {
    const kept = join(folder, 'kept')
    const command = shell('API_TOKEN=hunter2hunter2 CLOSED=today suite')
    await hunt(['--app', app, '--keep', kept, '--', ...command])
    expect(readFileSync(kept, 'latin1')).not.toContain('hunter2')
    const file = join(folder, 'from.json')
    const { err } = await hunt(['--app', app, '--from', kept, '--json', file])
    expect(err).toMatch(/variables whose values are not kept: API_TOKEN\. /)
    const { calls } = JSON.parse(readFileSync(file, 'utf8')) as JsonHunt
    expect(calls.map(({ unusable }) => unusable)).toEqual([
      'it sends no statement',
      'it sends no statement',
    ])
    expect((await hunt(['--app', app, '--from', kept], { API_TOKEN: 'x' })).err).not.toContain(
      'API_TOKEN',
    )
  })
})

describe('a database that cannot be used', () => {
  const marker = join(folder, 'the-suite-ran')
  const suiteThatTells = [
    'node',
    '-e',
    `require('fs').writeFileSync(${JSON.stringify(marker)}, '')`,
  ]

  test('by its role is told before the suite runs, with the statements that help', async () => {
    await withClient(url, (client) =>
      client.query(`DROP TABLE IF EXISTS locked; CREATE TABLE locked (id serial, n int);
        ALTER TABLE locked ENABLE ROW LEVEL SECURITY;
        DO $$ BEGIN CREATE ROLE hunt_weak LOGIN NOBYPASSRLS; EXCEPTION WHEN duplicate_object THEN END $$;
        REVOKE SET ON PARAMETER session_replication_role FROM hunt_weak;
        ALTER ROLE hunt_weak NOBYPASSRLS`),
    )
    const weak = url.replace(/\/\/[^@]*@/, '//hunt_weak@')
    const run = (): Promise<Ended> => hunt(['--app', app, '--url', weak, '--', ...suiteThatTells])
    const { code, err } = await run()
    expect(existsSync(marker)).toBe(false)
    expect(code).toBe(4)
    expect(err).toMatch(
      /database \S+ at \S+: the role hunt_weak may not set session_replication_role/,
    )
    expect(err).not.toContain("state: 'restore'")
    const grants = [...err.matchAll(/^ {2}((?:GRANT|ALTER ROLE) .*;)$/gm)].map(([, one]) => one)
    expect(grants).toHaveLength(4)
    await withClient(url, (client) => client.query(grants.join('\n')))
    // They are enough.
    expect((await run()).code).toBe(3)
    expect(existsSync(marker)).toBe(true)
    await withClient(url, (client) =>
      client.query('DROP TABLE locked; DROP OWNED BY hunt_weak; DROP ROLE hunt_weak'),
    )
  })

  test('by its address is told with host and name, and without the password', async () => {
    const wrong = 'postgres://ann:hunter2@127.0.0.1:1/nowhere'
    const { err, code } = await hunt(['--app', app, '--url', wrong, '--', ...suite])
    expect(err).toMatch(/^hunt: database nowhere at 127\.0\.0\.1:1 \(--url\): .*ECONNREFUSED/m)
    expect(err).toContain('would have been those of database nowhere at 127.0.0.1:1')
    expect(err).not.toContain('hunter2')
    expect(code).toBe(3)
  })

  test('because a hunt was cut off there is told before the suite runs', async () => {
    rmSync(marker, { force: true })
    await withClient(url, (client) =>
      client.query(`CREATE SCHEMA holdfast_race_kept;
        CREATE TABLE holdfast_race_kept.snapshot AS SELECT now() AS at, '[]'::json AS sequences`),
    )
    const { err } = await hunt(['--app', app, '--', ...suiteThatTells])
    await withClient(url, (client) => client.query('DROP SCHEMA holdfast_race_kept CASCADE'))
    expect(err).toContain('HOLDFAST_RACE_LEFTOVER=restore')
    expect(existsSync(marker)).toBe(false)
  })
})

describe('what is handed over', () => {
  test('a baseline: known races are no failure, new ones are', async () => {
    const baseline = join(folder, 'races.json')
    const written = await verdictsOf(['--write-baseline', baseline], suite)
    expect(written.code).toBe(1)
    const again = await verdictsOf(['--baseline', baseline], suite)
    expect(again.code).toBe(0)
    expect(again.out).toContain('in the baseline: 1 of 1 race')
    writeFileSync(baseline, '{ "format": 1, "races": [] }')
    expect((await verdictsOf(['--baseline', baseline], suite)).code).toBe(1)
  })

  test('page, SARIF, remarks for GitHub, a recording that is hunted in once more', async () => {
    const file = (name: string): string => join(folder, name)
    const summary = file('summary.md')
    const { out } = await verdictsOf(
      ['--html', file('h.html'), '--sarif', file('h.sarif'), '--keep', file('recording')],
      suite,
      { GITHUB_ACTIONS: 'true', GITHUB_STEP_SUMMARY: summary },
    )
    expect(out).toMatch(/^::error file=/m)
    expect(readFileSync(summary, 'utf8')).toContain('## 1 race proven')
    expect(readFileSync(file('h.html'), 'utf8')).toMatch(/^<!doctype html>/)
    expect(JSON.parse(readFileSync(file('h.sarif'), 'utf8')).runs[0].results).toHaveLength(1)
    const args = ['--app', app, '--from', file('recording')]
    expect((await hunt(args, { COUPONS: 'fixed' })).code).toBe(0)
    expect((await hunt(args)).code).toBe(1)
    // Neither passwords nor the environment are in it.
    expect(readFileSync(file('recording'), 'latin1')).not.toContain(url)
  })

  test('--since: what has not changed is not looked at', async () => {
    const repository = mkdtempSync(join(folder, 'repository-'))
    const git = (...args: string[]): void =>
      void execFileSync('git', ['-c', 'user.name=x', '-c', 'user.email=x@y', ...args], {
        cwd: repository,
      })
    const copy = join(repository, 'app.ts')
    const text = readFileSync(app, 'utf8')
    writeFileSync(copy, text)
    writeFileSync(join(repository, 'package.json'), '{ "type": "module" }')
    execFileSync('ln', [
      '-s',
      path('../../../../../node_modules'),
      join(repository, 'node_modules'),
    ])
    git('init', '--quiet')
    git('add', 'app.ts')
    git('commit', '--quiet', '-m', 'x')
    const since = async (): Promise<Record<string, string>> => {
      const file = join(folder, 'since.json')
      const args = ['--app', copy, '--since', 'HEAD', '--json', file]
      const child = spawn(process.execPath, [main, 'hunt', ...args, '--', ...suite], {
        cwd: repository,
        env: { ...process.env, DATABASE_URL: url },
      })
      await once(child, 'close')
      const { pairs } = JSON.parse(readFileSync(file, 'utf8')) as JsonHunt
      return Object.fromEntries(pairs.map(({ name, verdict }) => [name, verdict]))
    }
    expect(new Set(Object.values(await since()))).toEqual(new Set(['not looked at']))
    writeFileSync(copy, `${text}\n// changed\n`)
    expect(await since()).toEqual(racy)
  })
})

describe('how it ends', () => {
  test('3: nothing was recorded, what there was instead, and whose rows were meant', async () => {
    const { code, err } = await hunt(['--app', app, '--', 'node', '-e', ''])
    expect(code).toBe(3)
    expect(err).toContain('nothing was recorded')
    expect(err).toMatch(/There was instead: 1 process of Node .*, no server of node:http that/)
    const { pathname, host } = new URL(url)
    expect(err).toContain(`database ${pathname.slice(1)} at ${host}`)
    const elsewhere = `require('http').get('http://127.0.0.1:1/').on('error', () => {})`
    const sent = await hunt(['--app', app, '--', 'node', '-e', elsewhere])
    expect(sent.err).toContain('requests that were sent to 127.0.0.1:1')
    expect((await hunt(['--app', app, '--', 'true'])).err).toContain('no process of Node')
  })

  test('4: nothing could be proven or refuted', async () => {
    const broken = join(folder, 'broken.ts')
    writeFileSync(broken, 'export const app = (request, response) => response.writeHead(500).end()')
    const { code, out } = await hunt(['--app', broken, '--', ...suite])
    expect(code).toBe(4)
    expect(out).toContain('in no pair: 2 calls')
    const empty = join(folder, 'empty.ts')
    writeFileSync(empty, `console.log('I am here'); process.exit(7)`)
    const ended = await hunt(['--app', empty, '--', ...suite])
    expect(ended.code).toBe(4)
    expect(ended.err).toMatch(/ended by itself, with 7[\s\S]*I am here/)
  })

  test('5: the suite itself failed', async () => {
    const failing = { COUPONS: 'fixed', SUITE: 'fails' }
    expect((await verdictsOf([], suite, failing)).code).toBe(5)
    expect((await verdictsOf([], suite, { SUITE: 'fails' })).code).toBe(1)
  })

  test.each([
    [[], /needs your application/],
    [['--app', app], /needs the command/],
    [['--app', 'nowhere.ts', '--', 'true'], /no file nowhere.ts/],
    [['--app', app, '--baseline', 'nowhere.json', '--', 'true'], /--write-baseline/],
    [['--app', app, '--', 'no-such-program'], /could not be started/],
    [['--app', app, '--seconds', 'x', '--', 'true'], /--seconds/],
    [['--app', app, '--refused', '=x', '--', 'true'], /--refused: .* a path into the answer/],
    [['--app', app, '--functions', 'half', '--', 'true'], /--functions is open or atomic/],
    [['--loud'], /Unknown option/],
  ])('2: %j is misuse', async (args, text) => {
    const { code, err } = await hunt(args)
    expect([code, err]).toEqual([2, expect.stringMatching(text)])
  })

  test('--help is 0 and names the exit codes', async () => {
    const { code, out } = await hunt(['--help'])
    expect(code).toBe(0)
    expect(out).toContain('Exit codes: 0')
  })
})
