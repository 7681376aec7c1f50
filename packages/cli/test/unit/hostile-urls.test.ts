/** A database URL, or a part of it, is never printed; whatever is in the password, and wherever the URL was set. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { commands } from '../../src/commands/index.ts'
import { checkedPeerUrl } from '../../src/settings/database-url.ts'
import { type Result, runCommand } from '../support/run-command.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-hostile-'))
  writeFileSync(join(folder, 'package.json'), '{}')
})
afterAll(() => rmSync(folder, { recursive: true }))

const printable = Array.from({ length: 95 }, (_, at) => String.fromCharCode(32 + at))

/** What means something in a URL, in a shell or in a file. */
const special = Array.from('@/?#%:[]\\ "\'`$&=;')

/** At each position, also behind an `@`, where what follows could be a host, and before digits, which could be a port. */
const passwordsWith = (each: string): string[] => [
  `${each}Qk7Zv9Xj`,
  `Qk7Z${each}v9Xj`,
  `Qk7Zv9Xj${each}`,
  `Qk7@v9Xj${each}3Wp8Yd`,
  `Qk7${each}v9Xj@3Wp8Yd`,
  `4815162342${each}v9Xj`,
  `48151${each}x=Yd@3Wp8`,
]

/** Parts of the password that were printed. */
const printed = (password: string, { out, err }: Result): string[] =>
  Array.from({ length: Math.max(password.length - 2, 0) }, (_, at) => password.slice(at, at + 3))
    .filter((part) => (out + err).includes(part))
    .map((part) => `${part} of ${password}: ${err}`)

const urlWith = (password: string): string => `postgres://bill:${password}@127.0.0.1:1/shop`

/** What is wrong: those that are refused must say where they came from, the others find nobody who listens. */
async function wrongOf(
  passwords: readonly string[],
  from: string,
  run: (url: string) => Promise<Result>,
): Promise<string[]> {
  const wrong: string[] = []
  for (const password of passwords) {
    const result = await run(urlWith(password))
    wrong.push(...printed(password, result))
    if (result.code === 0 || result.out !== '') wrong.push(`${password}: ${result.out}`)
    if (result.err.startsWith('{')) {
      const { error } = JSON.parse(result.err) as { error: Record<string, string> }
      const isRefused =
        error['code'] === 'DATABASE_URL_INVALID' &&
        error['message']?.startsWith(`${from} `) === true &&
        error['next']?.includes('percent-encoded') === true
      if (!isRefused && error['code'] !== 'ECONNREFUSED') wrong.push(`${password}: ${result.err}`)
    }
  }
  return wrong
}

test('every printable character at every position', async () => {
  const wrong = await wrongOf(printable.flatMap(passwordsWith), 'DATABASE_URL', (url) =>
    runCommand(['locks', '--json'], { DATABASE_URL: url }, folder),
  )
  expect(wrong).toEqual([])
}, 60_000)

describe.each([[['--json']], [[]]])('%j: characters that mean something', (json) => {
  const passwords = special.flatMap(passwordsWith)

  test('in a variable', async () => {
    const wrong = await wrongOf(passwords, 'DATABASE_URL', (url) =>
      runCommand(['locks', ...json], { DATABASE_URL: url }, folder),
    )
    expect(wrong).toEqual([])
  }, 60_000)

  test('in a flag', async () => {
    const wrong = await wrongOf(passwords, '--database-url', (url) =>
      runCommand(['holds', '--database-url', url, ...json], {}, folder),
    )
    expect(wrong).toEqual([])
  }, 60_000)

  test('in .env without quotes, which a # ends', async () => {
    const file = join(folder, '.env')
    const wrong = await wrongOf(passwords, 'DATABASE_URL of .env', (url) => {
      writeFileSync(file, `DATABASE_URL=${url}\n`)
      return runCommand(['top', ...json], {}, folder)
    })
    rmSync(file)
    expect(wrong).toEqual([])
  }, 60_000)

  test.each([
    ['databaseUrl', ['leases']],
    ['shards.north', ['shards', 'init', '--yes']],
  ])(
    'in the configuration file: %s',
    async (key, words) => {
      const file = join(folder, 'holdfast.config.json')
      const wrong = await wrongOf(passwords, `${key} of the configuration file`, (url) => {
        writeFileSync(file, JSON.stringify({ databaseUrl: url, shards: { north: url } }))
        return runCommand([...words, '--config', file, ...json])
      })
      rmSync(file)
      expect(wrong).toEqual([])
    },
    60_000,
  )
})

/** What each command needs to come to its database. */
const lines: Readonly<Record<string, string>> = {
  why: 'why 4711',
  cancel: 'cancel 4711',
  ledger: 'ledger books',
  jobs: 'jobs',
}

describe('every command', () => {
  const needing = commands.filter((each) => each.needsDatabase && each.handsOn !== true)
  const passwords = Array.from('@/?#%:').flatMap(passwordsWith)
  test.each(needing.map(({ name }) => name))(
    '%s',
    async (name) => {
      const words = (lines[name] ?? name).split(' ')
      for (const json of [['--json'], []]) {
        const line =
          name === 'exec' ? ['exec', '--lock', 'a', ...json, '--', 'true'] : [...words, ...json]
        const wrong = await wrongOf(passwords, 'DATABASE_URL', (url) =>
          runCommand(line, { DATABASE_URL: url }, folder),
        )
        expect(wrong).toEqual([])
      }
    },
    60_000,
  )

  test.each(commands.map(({ name }) => name))('%s: a URL where none belongs', async (name) => {
    const password = 'Qk7Zv9Xj'
    const url = urlWith(password)
    for (const json of [['--json'], []]) {
      for (const line of [
        ...(name === 'console' ? [] : [[name, url, ...json]]),
        [url, name, ...json],
        [`--database-url=${url}`, name, ...json],
        ['--database-url', url, name, ...json],
      ]) {
        expect(printed(password, await runCommand(line, {}, folder))).toEqual([])
      }
    }
  })
})

describe('is refused, with the setting that it came from', () => {
  const invalid = 'DATABASE_URL_INVALID'
  test.each([
    ['postgres://u:S3cr@tp4ss/9x@h/d', /^DATABASE_URL has an @ after a \/ or \?/],
    ['postgres://u:p@Secret?Tail@h/d', /^DATABASE_URL has an @ after/],
    ['postgres://u:12?a=b@h/d', /^DATABASE_URL has an @ after/],
    ['postgres://u:hunter2/x@h/d', /^DATABASE_URL has an @ after/],
    ['postgres://u:p#x@h/d', /^DATABASE_URL has a # in it/],
    ['postgres://postgres@127.0.0.1:notaport/d', /^DATABASE_URL cannot be read: its port/],
    ['postgres://u@h:99999/d', /^DATABASE_URL cannot be read: its port/],
    ['postgres://u@h/d?port=99999', /^DATABASE_URL cannot be read: its port/],
    ['postgres://u:a%ffb@h/d', /^DATABASE_URL has a % in it/],
    ['postgres://u@h/d?sslrootcert=/nowhere/ca.pem', /sslrootcert that cannot be read \(ENOENT\)/],
    ['socket://u:S3cr/et@/tmp?db=d', /^DATABASE_URL has an @ after/],
  ])('%s', async (url, message) => {
    const { code, err } = await runCommand(['locks', '--json'], { DATABASE_URL: url })
    const { error } = JSON.parse(err) as { error: Record<string, string> }
    expect([code, error['code']]).toEqual([1, invalid])
    expect(error['message']).toMatch(message)
    expect(error['next']).toContain('percent-encoded')
  })

  test.each([
    ['DATABASE_URL=postgres://u:S3cr@tp4ss#9x@h/d'],
    ['export DATABASE_URL = postgres://u:p@ss w/rd#1'],
    ['DATABASE_URL=postgres://u:S3cr@tp4ss #9x@h/d'],
    ['DATABASE_URL=postgres://a/b\nDATABASE_URL=postgres://u:S3cr@tp4ss#9'],
  ])('cut off in .env: %s', async (text) => {
    const file = join(folder, '.env')
    writeFileSync(file, text)
    const { err } = await runCommand(['locks', '--json'], {}, folder)
    rmSync(file)
    expect(JSON.parse(err)).toMatchObject({
      error: { code: invalid, message: 'DATABASE_URL of .env is cut off at a #.' },
    })
  })

  test('with the name of another variable in .env', async () => {
    const file = join(folder, '.env')
    writeFileSync(file, 'PASSWORD=S3cr\nDATABASE_URL=postgres://u:${PASSWORD}@h/d')
    const { err } = await runCommand(['locks', '--json'], {}, folder)
    rmSync(file)
    expect(JSON.parse(err)).toMatchObject({
      error: { code: invalid, message: expect.stringContaining('not filled in') as unknown },
    })
  })

  test.each([
    ['postgres://u:S3cr@tp4ss@h/d', /has an @ in its password/],
    ['postgres://u:a%zz@h/d', /has a % in it/],
    ['postgres://u:a/b@h/d', /has an @ after/],
  ])('of a peer, which libpq reads: %s', (url, message) => {
    expect(() => checkedPeerUrl(url, 'shards.a')).toThrow(message)
  })
})

describe('control: is taken', () => {
  test.each([
    ['postgres://u:S3cr@tp4ss@127.0.0.1:1/d'],
    ['postgres://u:p%40ss%2Fw%3Frd%231@127.0.0.1:1/d'],
    ['postgres://u:100%@127.0.0.1:1/d'],
    ['postgresql://u@127.0.0.1:1/d?options=-c search_path=x'],
    ['postgres://u:p@[::1]:1/d'],
    ['postgres:///d?host=127.0.0.1&port=1'],
    ['postgres://u:p@/d?host=127.0.0.1&port=1'],
  ])('%s', async (url) => {
    const { err } = await runCommand(['locks', '--json'], { DATABASE_URL: url })
    expect(JSON.parse(err)).toMatchObject({ error: { code: 'ECONNREFUSED' } })
  })

  test('a comment of .env', async () => {
    const file = join(folder, '.env')
    writeFileSync(file, 'DATABASE_URL=postgres://u@127.0.0.1:1/d # mine\n')
    const { err } = await runCommand(['locks', '--json'], {}, folder)
    rmSync(file)
    expect(JSON.parse(err)).toMatchObject({ error: { code: 'ECONNREFUSED' } })
  })
})
