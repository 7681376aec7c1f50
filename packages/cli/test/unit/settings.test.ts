import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { settingsOf } from '../../src/settings/settings.ts'
import { runCommand } from '../support/run-command.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-settings-'))
  writeFileSync(
    join(folder, '.env'),
    'HOLDFAST_DATABASE_URL=\nDATABASE_URL=postgres://file/x\nHOLDFAST_SCHEMA=\n',
  )
})
afterAll(() => rmSync(folder, { recursive: true }))

const read = (
  environment: Record<string, string>,
  at = '/',
  config = {},
): readonly (string | undefined)[] => {
  const { schema, databaseUrl } = settingsOf({}, config, { environment, folder: at })
  return [schema, databaseUrl]
}

describe('a variable that is empty, as compose files pass it', () => {
  test('is one that is not set', () => {
    expect(read({ HOLDFAST_SCHEMA: '', HOLDFAST_DATABASE_URL: '' })).toEqual([undefined, undefined])
    expect(read({ HOLDFAST_DATABASE_URL: '', DATABASE_URL: 'postgres://a/b' })).toEqual([
      undefined,
      'postgres://a/b',
    ])
  })

  test('leaves room for .env, whose own empty ones count as little, and for the configuration file', () => {
    const empty = { HOLDFAST_SCHEMA: '', HOLDFAST_DATABASE_URL: '', DATABASE_URL: '' }
    expect(read(empty, folder)).toEqual([undefined, 'postgres://file/x'])
    expect(read(empty, '/', { schema: 'own', databaseUrl: 'postgres://c/d' })).toEqual([
      'own',
      'postgres://c/d',
    ])
    expect(read(empty, folder, { schema: 'own' })).toEqual(['own', 'postgres://file/x'])
  })

  test('so a command runs as if it were not there', async () => {
    const plan = await runCommand(['plan'], { HOLDFAST_SCHEMA: '' })
    expect([plan.code, plan.out]).toEqual([0, expect.stringContaining('CREATE TABLE "holdfast".')])
    const { code, err } = await runCommand(['leases'], { HOLDFAST_DATABASE_URL: '' })
    expect([code, err]).toEqual([2, expect.stringContaining('leases needs a database: set')])
  })
})

describe('a flag that is empty', () => {
  test.each([
    [['plan', '--schema', ''], '--schema is empty.'],
    [['plan', '--schema='], '--schema is empty.'],
    [['leases', '--database-url', ''], '--database-url is empty.'],
  ])('%j is not understood', async (line, message) => {
    const { code, out, err } = await runCommand([...line, '--json'], {
      DATABASE_URL: 'postgres://a/b',
      HOLDFAST_SCHEMA: 'other',
    })
    expect([code, out]).toEqual([2, ''])
    expect(JSON.parse(err)).toMatchObject({ error: { code: 'USAGE', message } })
  })
})

describe('a URL of another database than PostgreSQL', () => {
  const commands = [['migrate'], ['doctor'], ['leases'], ['plan'], ['grants', '--role', 'app']]
  const refusal = async (line: readonly string[], url: string): Promise<unknown> => {
    const { code, out, err } = await runCommand([...line, '--json'], { DATABASE_URL: url })
    expect([code, out]).toEqual([1, ''])
    return (JSON.parse(err) as { error: unknown }).error
  }

  test.each(
    commands.flatMap((line) =>
      ['file:./app.db', 'sqlite:///app.db', 'data/app.sqlite'].map((url) => [line, url] as const),
    ),
  )('%j with %s says what to do on SQLite', async (line, url) => {
    expect(await refusal(line, url)).toMatchObject({
      code: 'DATABASE_URL_INVALID',
      next: expect.stringContaining('migrate(driver) of holdfast/sqlite') as string,
    })
  })

  test.each([['leases'], ['plan'], ['grants', '--role', 'app']])(
    '%s, which is for PostgreSQL alone, says so with a URL of MariaDB or MySQL',
    async (...line) => {
      expect(await refusal(line, 'mysql://bill@localhost/shop')).toMatchObject({
        code: 'DATABASE_URL_INVALID',
        next: expect.stringContaining('for PostgreSQL alone') as string,
      })
    },
  )

  test('one that is written wrongly: a command for both shows both forms', async () => {
    const next = (form: string): object => ({ next: expect.stringContaining(form) as string })
    const jdbc = 'jdbc:mysql://localhost/shop'
    expect(await refusal(['migrate'], jdbc)).toMatchObject(next('or mysql://user:password@'))
    expect(await refusal(['leases'], jdbc)).not.toMatchObject(next('mysql://'))
  })
})
