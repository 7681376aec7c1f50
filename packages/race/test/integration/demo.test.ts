/** The command, as a process, from the sources. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../holdfast/test/support/database.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const { directUrl: url } = await testDatabase()
const folder = mkdtempSync(join(tmpdir(), 'race-demo-'))
afterAll(() => rmSync(folder, { recursive: true }))

interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** Without how far it is, which is told where it takes long. */
function complaints(err: string): string {
  return err.replaceAll(/^.*% of the budget\)\n/gm, '')
}

async function command(
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<Ended> {
  const { DATABASE_URL: _, ...rest } = process.env
  const child = spawn(process.execPath, [main, ...args], { env: { ...rest, ...environment } })
  let out = ''
  let err = ''
  child.stdout.on('data', (chunk: Buffer) => (out += String(chunk)))
  child.stderr.on('data', (chunk: Buffer) => (err += String(chunk)))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, out, err: complaints(err) }
}

async function schemasLeft(): Promise<number> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    const { rows } = await client.query<{ n: number }>(
      `SELECT count(*)::int AS n FROM pg_namespace WHERE nspname LIKE 'holdfast\\_race\\_demo%'`,
    )
    return rows[0]?.n ?? -1
  } finally {
    await client.end()
  }
}

describe('demo', () => {
  test('finds the race, shows the fix to be free of it, writes the page, leaves nothing', async () => {
    const page = join(folder, 'report.html')
    const { code, out, err } = await command(['demo', '--url', url, '--out', page])
    expect([code, err]).toEqual([0, ''])
    expect(out).toMatch(/✗ race in upload within the quota\n[\s\S]*check-then-insert/)
    expect(out).toMatch(/→ 99[\s\S]*→ 99/)
    expect(out).toMatch(/101 rows here, 100 in the 2 serial orders/)
    expect(out).toMatch(
      /✓ no race in upload within the quota, user locked[\s\S]*exhaustive: \d+ classes/,
    )
    expect(out).toContain('SELECT 1 FROM users WHERE id = 1 FOR UPDATE')
    expect(out).not.toContain('\u001b')
    expect(readFileSync(page, 'utf8')).toMatch(/^<!doctype html>[\s\S]*class="picture large"/)
    expect(await schemasLeft()).toBe(0)
  })

  test('takes the database from the environment, and colours on demand', async () => {
    const { code, out } = await command(['demo', '--open', '--out', join(folder, 'second.html')], {
      DATABASE_URL: url,
      FORCE_COLOR: '1',
      // Where nothing can be opened, the address is enough.
      PATH: folder,
    })
    expect(code).toBe(0)
    expect(out).toContain('\u001b[31m')
    expect(out).toContain('No program was found that opens it.')
  })

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)('leaves nothing behind when it is ended by %s', async (signal, status) => {
    const child = spawn(process.execPath, [main, 'demo', '--url', url])
    await once(child.stdout, 'data')
    child.kill(signal)
    const [code] = (await once(child, 'close')) as [number | null]
    expect(code).toBe(status)
    expect(await schemasLeft()).toBe(0)
  })

  test('leaves nothing behind when nobody reads on, as of `head`', async () => {
    const child = spawn(process.execPath, [main, 'demo', '--url', url])
    let err = ''
    child.stderr.on('data', (chunk: Buffer) => (err += String(chunk)))
    await once(child.stdout, 'data')
    child.stdout.destroy()
    const [code] = (await once(child, 'close')) as [number | null]
    expect([code, complaints(err)]).toEqual([0, ''])
    expect(await schemasLeft()).toBe(0)
  })

  test('says why it cannot, without the password', async () => {
    const mysql = await command(['demo', '--url', 'mysql://x/y'])
    expect(mysql.err).toContain('such as postgres://user:password@localhost:5432/test')
    const wrong = new URL(url)
    wrong.pathname = '/no_such_database'
    wrong.password = 'very-secret'
    const { code, out, err } = await command(['demo', '--url', wrong.href])
    expect(code).toBe(1)
    expect(err).toMatch(/does not exist\n.*Create the database/)
    expect(out + err).not.toContain('very-secret')
  })
})

describe('the command line', () => {
  test.each([
    [['--help'], 0, /Usage: npx @holdfast\/race hunt[\s\S]*race demo --url[\s\S]*Exit codes/],
    [['--version'], 0, /^\d+\.\d+\.\d+/],
  ])('%j', async (args, code, text) => {
    const ended = await command(args)
    expect(ended.code).toBe(code)
    expect(ended.out).toMatch(text)
  })

  test.each([
    [[], /A command is needed/],
    [['demo'], /needs a database/],
    [['sing'], /The commands are hunt and demo/],
    [['demo', '--loud'], /Unknown option '--loud'/],
  ])('%j is misuse', async (args, text) => {
    const { code, err } = await command(args)
    expect(code).toBe(2)
    expect(err).toMatch(text)
    expect(err).toContain('Usage:')
  })
})
