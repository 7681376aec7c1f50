/**
 * A new user follows the README: from `npm install` to the first lock by its name in the console. The
 * commands and the code are those of its section "See it", taken from there; only the names of our own
 * packages become the tarballs that would be published, and the database is one of ours.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type PostgresServer, startPostgres, waitUntil } from '@holdfast/testkit'
import { chromium } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { pack } from '../support/packed.ts'

const readme = readFileSync(new URL('../../../../README.md', import.meta.url), 'utf8')
const [, section = ''] = /^## See it\n([\s\S]*?)^## /m.exec(readme) ?? []
const blocks = [...section.matchAll(/^```(\w+)[^\n]*\n([\s\S]*?)^```$/gm)].map(
  ([, language = '', text = '']) => ({ language, text }),
)
const commands = blocks
  .filter(({ language }) => language === 'sh')
  .flatMap(({ text }) => text.split('\n'))
  .filter((line) => line !== '')

const program = [
  process.env['HOLDFAST_CHROMIUM'],
  '/usr/bin/chromium',
  '/usr/bin/google-chrome',
].find((path) => path !== undefined && existsSync(path))

let project = ''
let registry = ''
let server: PostgresServer
const tarballs = new Map<string, string>()
const children: ChildProcess[] = []

beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'holdfast-new-user-'))
  server = await startPostgres()
  registry = await mkdtemp(join(tmpdir(), 'holdfast-registry-'))
  for (const [name, folder] of [
    ['holdfast', 'holdfast'],
    ['@holdfast/cli', 'cli'],
    ['@holdfast/console', 'console'],
  ] as const) {
    tarballs.set(name, (await pack(folder, registry)).path)
  }
})

afterAll(async () => {
  for (const { pid } of children) {
    try {
      if (pid !== undefined) process.kill(-pid, 'SIGKILL')
    } catch {
      // It has ended by itself.
    }
  }
  await server.stop()
  for (const folder of [project, registry]) await rm(folder, { recursive: true, force: true })
})

/** What would come from the registry comes from where it was packed. */
function withTarballs(command: string): string {
  if (!command.startsWith('npm install')) return command
  return command
    .split(' ')
    .map((word) => tarballs.get(word) ?? word)
    .join(' ')
    .concat(' --no-audit --no-fund --prefer-offline')
}

/** One shell, as a person has one; what it says is kept. */
function shell(script: string, environment: Record<string, string>) {
  const child = spawn('bash', ['-e', '-c', script], {
    cwd: project,
    env: { ...process.env, ...environment },
    detached: true,
  })
  children.push(child)
  const said = { out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said.out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said.err += text
  })
  const { promise: ended, resolve } = Promise.withResolvers<number | null>()
  child.once('close', resolve)
  return { said, ended }
}

test('the section has what the walk needs', () => {
  expect(commands.filter((line) => line.startsWith('npm install'))).toHaveLength(1)
  expect(commands.at(-1)).toBe('npx @holdfast/console')
  expect(blocks.filter(({ language }) => language === 'js')).toHaveLength(1)
})

test('npm install, a lock, the console: its name is there', { timeout: 240_000 }, async () => {
  const installing = commands.filter((line) => line.startsWith('npm '))
  const install = shell(installing.map(withTarballs).join('\n'), {})
  expect([await install.ended, install.said.err]).toEqual([0, expect.any(String)])

  for (const { text } of blocks.filter(({ language }) => language === 'js')) {
    const [, file = ''] = /^\/\/ (\S+\.mjs)\n/.exec(text) ?? []
    await writeFile(join(project, file), text)
  }

  const database = await server.createDatabase()
  const rest = commands
    .filter((line) => !line.startsWith('npm '))
    .map((line) =>
      line.startsWith('export DATABASE_URL=') ? `export DATABASE_URL='${database}'` : line,
    )
    // What a machine with other tests on it needs and a person at a terminal does not.
    .map((line) => (line === 'npx @holdfast/console' ? `${line} --port 0 --login-link` : line))
  const { said } = shell(rest.join('\n'), {})
  const address = await waitUntil(
    'the console has printed its address',
    () => {
      if (said.err.includes('rror')) throw new Error(said.err)
      return /http:\/\/\S+#token=\S+/.exec(said.out)?.[0]
    },
    { limitMs: 60_000 },
  )
  if (program === undefined) await seenByHttp(address)
  else await seenInBrowser(address)

  const [, locks = ''] = /`(npx holdfast locks)`/.exec(section) ?? []
  const terminal = shell(locks, { DATABASE_URL: database })
  expect([await terminal.ended, terminal.said.out]).toEqual([0, expect.stringContaining('cart:7')])
})

async function seenInBrowser(address: string): Promise<void> {
  await using browser = await chromium.launch({
    executablePath: program as string,
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
  const page = await browser.newPage()
  const troubles: string[] = []
  page.on('pageerror', (error) => troubles.push(error.message))
  await page.goto(address)
  await page.getByText('cart:7').first().waitFor({ timeout: 30_000 })
  expect(page.url()).not.toContain('token')
  expect(troubles).toEqual([])
}

/** The same, where there is no browser: logs in with the token of the address, as its page does. */
async function seenByHttp(address: string): Promise<void> {
  const { origin, hash } = new URL(address)
  const login = await fetch(`${origin}/api/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token: hash.replace('#token=', '') }),
  })
  expect(login.status).toBe(200)
  const cookie = login.headers.get('set-cookie')?.split(';')[0] ?? ''
  const name = await waitUntil('the lock is seen', async () => {
    const response = await fetch(`${origin}/api/locks`, { headers: { cookie } })
    const { sessions } = (await response.json()) as {
      sessions: { holds: { name: string }[] }[]
    }
    return sessions.flatMap(({ holds }) => holds).find((lock) => lock.name === 'cart:7')?.name
  })
  expect(name).toBe('cart:7')
}
