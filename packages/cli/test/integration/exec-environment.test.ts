/** What the command gets is what the caller has: every variable, whatever its name, and two of ours. */
import { execFile } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { testDatabase } from '../../../holdfast/test/support/database.ts'
import { runCommand, runProcess, type Result } from '../support/run-command.ts'

let url: string
let folder: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await runCommand(['migrate'], { DATABASE_URL: url })
  folder = mkdtempSync(join(tmpdir(), 'holdfast-exec-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

const print = 'process.stdout.write(JSON.stringify(process.env))'

/** No shell can hold the first; shells change those at the end; Node itself would heed two. */
const odd = {
  'spring.datasource.url': 'jdbc:prod',
  'MY-VAR': '1',
  'npm_config_//registry.example.com/:_authToken': 'token',
  'BASH_FUNC_f%%': '() {  echo from-function\n}',
  '1ST': 'a\nb  c',
  ' ': 'blank',
  ä: 'ö',
  EMPTY: '',
  NODE_OPTIONS: '--max-http-header-size=20000',
  NODE_EXTRA: "it's $HOME",
  PWD: '/nowhere',
  OLDPWD: '/elsewhere',
  SHLVL: '7',
  _: 'last',
  IFS: 'x',
  PPID: '1',
  PS1: '>',
  OPTIND: '9',
}

const exec = async (command: readonly string[], environment: object = odd): Promise<Result> =>
  await runProcess(
    ['exec', '--lock', 'a', '--', ...command],
    { ...(environment as Record<string, string>), DATABASE_URL: url },
    folder,
  )

/** As the system hands it on. */
const directly = async (environment: object): Promise<Record<string, string>> =>
  await new Promise((resolve) => {
    const env = environment as Record<string, string>
    execFile(process.execPath, ['-e', print], { env }, (_, out) =>
      resolve(JSON.parse(out) as Record<string, string>),
    )
  })

test('names that are no identifiers of a shell, and variables that shells change', async () => {
  const { code, out, err } = await exec([process.execPath, '-e', print])
  expect([code, err]).toEqual([0, ''])
  const got = JSON.parse(out) as Record<string, string>
  expect(got).toMatchObject({
    ...(await directly(odd)),
    HOLDFAST_LEASE_NAME: 'a',
    HOLDFAST_LEASE_TOKEN: expect.stringMatching(/^\d+$/),
  })
  const added = Object.keys(got).filter((name) => !(name in odd) && !(name in process.env))
  expect(added.toSorted()).toEqual(['DATABASE_URL', 'HOLDFAST_LEASE_NAME', 'HOLDFAST_LEASE_TOKEN'])
})

test('functions of bash', async () => {
  const { out } = await exec(['bash', '-c', 'f'])
  expect(out).toBe('from-function\n')
})

test('signals that Node ignores are not ignored in the command, and nothing is left open', async () => {
  const look = `sed -n 's/^SigIgn:[^1-9a-f]*//p' /proc/$$/status; ls /proc/$$/fd`
  const { promise, resolve } = Promise.withResolvers<string>()
  execFile('sh', ['-c', look], (_, out) => resolve(out))
  const { out } = await exec(['sh', '-c', look], {})
  expect(out).toBe(await promise)
  expect(out).toMatch(/^\n0\n1\n2\n/)
})

test.each([
  ['without a first line', 'plain'],
  ['whose name has a = in it', 'a=b'],
  ['that is called -', '-'],
])('a command %s', async (_, name) => {
  writeFileSync(join(folder, name), 'echo "ran with $1"; exit 5\n')
  chmodSync(join(folder, name), 0o755)
  const path = `${folder}:${process.env['PATH']}`
  const { code, out } = await exec([name, '--x'], { PATH: path })
  expect([code, out]).toEqual([5, 'ran with --x\n'])
})
