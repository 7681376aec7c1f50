/** A right that is missing is named, with who can give it; it is not told as a schema that is missing. */
import { withClient } from '@holdfast/testkit'
import { beforeAll, expect, test } from 'vitest'
import { testDatabase } from '../../../holdfast/test/support/database.ts'
import { runCommand } from '../support/run-command.ts'

let weak: string
let powerless: string
beforeAll(async () => {
  const { directUrl } = await testDatabase()
  await runCommand(['migrate'], { DATABASE_URL: directUrl })
  const name = new URL(directUrl).pathname.slice(1)
  const urlOf = async (role: string, sql = ''): Promise<string> => {
    const url = new URL(directUrl)
    url.username = `${role}_${name}`
    await withClient(directUrl, async (client) => {
      await client.query(`CREATE ROLE "${url.username}" LOGIN; ${sql}`)
    })
    return url.href
  }
  const { out } = await runCommand(['grants', '--role', `weak_${name}`], {})
  weak = await urlOf('weak', out)
  powerless = await urlOf('powerless')
})

async function failure(url: string, line: string): Promise<Record<string, string>> {
  const { code, err } = await runCommand([...line.split(' '), '--json'], { DATABASE_URL: url })
  expect(code).toBe(1)
  return (JSON.parse(err) as { error: Record<string, string> }).error
}

test.each([
  ['audit', 'audit_steps'],
  ['maintain', 'empty_default_partition'],
  ['ledger redeclare calls --as credits --new --yes', 'redeclare_book'],
])(
  '%s is for the owner: what `grants` gives is not enough, and is not named',
  async (line, right) => {
    const { code, message, next } = await failure(weak, line)
    expect(code).toBe('RIGHT_MISSING')
    expect(message).toContain(`no EXECUTE on function ${right}`)
    expect(message).toContain('PostgreSQL said: permission denied for function')
    expect(next).toMatch(/^Connect as the role that owns the schema/)
  },
)

test.each(['audit', 'leases', 'ledger books'])('%s without any right', async (line) => {
  const { code, message, next } = await failure(powerless, line)
  expect(code).toBe('RIGHT_MISSING')
  expect(message).toContain('no USAGE on schema holdfast')
  expect(next).toMatch(/^Run what `holdfast grants --role <role>` prints/)
})

test('control: a schema that is not there is missing', async () => {
  expect((await failure(weak, 'audit --schema elsewhere'))['code']).toBe('SCHEMA_MISSING')
})
