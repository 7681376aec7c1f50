/** The command as people run it: a process, what it prints, and what it lets in. */
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { createDatabase, waitUntil } from '@holdfast/testkit'
import { beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { runCommand } from '../../src/command/run-command.ts'
import { codeOf, raw, tokens } from '../support/started-console.ts'

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))
const fromSource = new URL('../../../holdfast/test/support/from-source.ts', import.meta.url).href

let url = ''
beforeAll(async () => {
  url = await createDatabase(inject('postgresUrl'))
})

interface Running {
  readonly child: ChildProcess
  out(): string
  err(): string
  readonly ended: Promise<number | null>
}

/** Starts the command; the environment has nothing of ours unless it is given. */
function run(args: readonly string[], environment: Record<string, string> = {}): Running {
  const inherited = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/DATABASE_URL|HOLDFAST_CONSOLE/.test(name)),
  )
  const child = spawn(process.execPath, ['--import', fromSource, main, ...args], {
    env: { ...inherited, ...environment },
  })
  const { promise: ended, resolve } = Promise.withResolvers<number | null>()
  const texts = { out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    texts.out += chunk
  })
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    texts.err += chunk
  })
  child.once('close', resolve)
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  return { child, out: () => texts.out, err: () => texts.err, ended }
}

/** Waits for the address; gives it and the token of the link, if there is one. */
async function started({
  out,
  err,
}: Pick<Running, 'out' | 'err'>): Promise<{ origin: string; token: string }> {
  return await waitUntil('it listens', () => {
    if (err() !== '') throw new Error(err())
    const [, origin] = /on (http:\/\/[^/\s]+)\//.exec(out()) ?? []
    const [, token = ''] = /#token=(\S+)\n/.exec(out()) ?? []
    return origin === undefined ? undefined : { origin, token }
  })
}

const login = (origin: string, token: string): Promise<Response> =>
  fetch(`${origin}/api/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token }),
  })

describe('without credentials', () => {
  test('R5: into a log nothing is printed that logs in, and it says what is missing', async () => {
    const running = run(['--port', '0'], { DATABASE_URL: url })
    expect(await running.ended).toBe(2)
    expect(running.out()).toBe('')
    expect(running.err()).toContain('HOLDFAST_CONSOLE_VIEW_TOKEN')
    expect(running.err()).toContain('--login-link')
  })

  test('R5: asked for, it prints an address that logs in once, and never another', async () => {
    const running = run(['--port', '0', '--login-link'], { DATABASE_URL: url })
    const { origin, token } = await started(running)
    expect(running.out()).toContain(`${origin}/login#token=${token}`)
    expect((await fetch(`${origin}/api/locks`)).status).toBe(401)
    const bearer = { headers: { authorization: `Bearer ${token}` } }
    expect((await fetch(`${origin}/api/locks`, bearer)).status).toBe(401)

    const response = await login(origin, token)
    expect(response.status).toBe(200)
    const cookie = response.headers.get('set-cookie')?.split(';')[0] ?? ''
    const tree = await fetch(`${origin}/api/locks`, { headers: { cookie } })
    expect(await tree.json()).toMatchObject({ roots: [] })

    expect(await codeOf(await login(origin, token))).toBe('TOKEN_WRONG')
    running.child.kill('SIGTERM')
    expect(await running.ended).toBe(0)
    expect(running.out().match(/#token=/g)).toHaveLength(1)
  })

  test('R5: a person at a terminal gets one at the start, and another for Enter', async () => {
    const stop = new AbortController()
    const texts = { out: '' }
    let enter = (): void => undefined
    const ended = runCommand(['--port', '0'], {
      environment: { DATABASE_URL: url },
      out: (text) => (texts.out += text),
      err: (text) => (texts.out += text),
      stop: stop.signal,
      terminal: {
        onEnter: (hear) => {
          enter = hear
        },
      },
    })
    const links = (): string[] =>
      [...texts.out.matchAll(/#token=(\S+)\n/g)].map(([, one = '']) => one)
    const { origin, token } = await started({ out: () => texts.out, err: () => '' })
    expect((await login(origin, token)).status).toBe(200)
    expect(links()).toEqual([token])
    enter()
    const [, next = ''] = links()
    expect(next).not.toBe(token)
    // Who asks again has lost the one before, and it opens nothing any more.
    enter()
    const [, , last = ''] = links()
    expect((await login(origin, next)).status).toBe(401)
    expect((await login(origin, last)).status).toBe(200)
    stop.abort()
    expect(await ended).toBe(0)
  })

  test('two starts have two tokens, and may look but not act', async () => {
    const one = await started(run(['--port', '0', '--login-link'], { DATABASE_URL: url }))
    const two = await started(run(['--port', '0', '--login-link'], { HOLDFAST_DATABASE_URL: url }))
    expect(one.token).not.toBe(two.token)
    expect(one.token.length).toBeGreaterThanOrEqual(43)
    const answer = (await (await login(one.origin, one.token)).json()) as object
    expect(answer).toMatchObject({ identity: { role: 'view' } })
    expect((await login(two.origin, one.token)).status).toBe(401)
  })

  test('it is on this machine alone, and answers to its names only', async () => {
    const running = run(['--port', '0', '--login-link'], { DATABASE_URL: url })
    const { origin } = await started(running)
    const { hostname, port } = new URL(origin)
    expect(hostname).toBe('127.0.0.1')
    const ask = (host: string): Promise<string> =>
      raw(Number(port), `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
    expect(await ask(`localhost:${port}`)).toMatch(/^HTTP\/1.1 200 /)
    expect(await ask(`rebound.example:${port}`)).toMatch(/^HTTP\/1.1 421 /)
  })
})

describe('with credentials', () => {
  test('tokens of the environment open it, and no address that logs in is printed', async () => {
    const running = run(
      ['--port', '0', '--actions', 'cancel', '--redact', `shop=${url}`, `blog=${url}`],
      {
        HOLDFAST_CONSOLE_VIEW_TOKEN: tokens.view,
        HOLDFAST_CONSOLE_OPERATE_TOKEN: tokens.operate,
      },
    )
    const { origin, token } = await started(running)
    expect(token).toBe('')
    const info = async (bearer: string): Promise<unknown> =>
      (await fetch(`${origin}/api/info`, { headers: { authorization: `Bearer ${bearer}` } })).json()
    expect(await info(tokens.view)).toMatchObject({
      identity: { name: 'view' },
      actions: [],
      redaction: { keys: true, queries: true },
      databases: [{ name: 'shop' }, { name: 'blog' }],
    })
    expect(await info(tokens.operate)).toMatchObject({ actions: ['cancel'] })
    const headers = { authorization: `Bearer ${tokens.view}` }
    expect((await fetch(`${origin}/api/locks?database=blog`, { headers })).status).toBe(200)
    expect((await fetch(`${origin}/api/locks?database=other`, { headers })).status).toBe(404)
  })

  test('behind a proxy it is known by its public address', async () => {
    const running = run(
      ['--port', '0', '--login-link', '--public-url', 'https://ops.example.com/db'],
      {
        DATABASE_URL: url,
      },
    )
    const shown = await waitUntil('it listens', () => /login#token/.exec(running.out())?.[0])
    expect(shown).toBeDefined()
    expect(running.out()).toContain('https://ops.example.com/db/login#token=')
  })
})

describe('when something is wrong', () => {
  const hidden = 'postgres://me:hunter2@127.0.0.1:1/nowhere'

  test.each([
    [[], /database is needed/],
    [['--port', '99999', hidden], /--port takes/],
    [['--actions', 'drop', hidden], /--actions takes/],
    [['--public-url', 'ftp://x', hidden], /--public-url takes/],
    [['--public-url', 'http://ops.example.com', hidden], /must be https/],
    [['sqlserver://me:hunter2@x/y'], /postgres:/],
    [['mysql://me:hun@ter2/@x/y'], /cannot be read/],
    [[`a=${hidden}`, `a=${hidden}`], /same name/],
    [['--tokn', 'hunter2'], /tokn/],
  ] as [string[], RegExp][])(
    '%#: the command line is explained, exit code 2',
    async (args, why) => {
      const running = run(args)
      expect(await running.ended).toBe(2)
      expect(running.err()).toMatch(why)
      expect(running.err()).toContain('Usage: npx @holdfast/console')
      expect(running.err()).not.toContain('hunter2')
    },
  )

  test('a token that could be guessed is refused', async () => {
    const running = run(['--port', '0', url], { HOLDFAST_CONSOLE_VIEW_TOKEN: 'hunter2' })
    expect(await running.ended).toBe(2)
    expect(running.err()).toContain('shorter than 20 characters')
    expect(running.err()).not.toContain('hunter2')
  })

  test('a database that cannot be reached is said, without its address', async () => {
    const running = run(['--login-link', hidden])
    expect(await running.ended).toBe(1)
    expect(running.err()).toMatch(/^Database main cannot be reached: ECONNREFUSED\. Check host/)
    expect(running.err()).not.toMatch(/hunter2|127\.0\.0\.1/)
  })

  test('a port that is taken is said', async () => {
    const { origin } = await started(run(['--port', '0', '--login-link'], { DATABASE_URL: url }))
    const running = run(['--port', new URL(origin).port, '--login-link'], { DATABASE_URL: url })
    expect(await running.ended).toBe(1)
    expect(running.err()).toContain('EADDRINUSE')
  })

  test('help and version need no database', async () => {
    const [help, version] = [run(['--help']), run(['--version'])]
    expect([await help.ended, await version.ended]).toEqual([0, 0])
    expect(help.out()).toContain('HOLDFAST_CONSOLE_VIEW_TOKEN')
    expect(version.out()).toMatch(/^\d+\.\d+\.\d+\S*\n$/)
  })
})
