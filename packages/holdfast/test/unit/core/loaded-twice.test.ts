import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { lockNamespace } from '../../../src/index.ts'

/** Modules are loaded again by hot reload, by tests, and where a package is there as ESM and as CommonJS. */
afterEach(() => vi.resetModules())

describe('U4: a module that declares a namespace', () => {
  const declare = async (about: string): Promise<unknown> => {
    vi.resetModules()
    const again = await import('../../../src/index.ts')
    expect(again.lockNamespace).not.toBe(lockNamespace)
    return again.lockNamespace('reloaded', about)
  }

  test('may be loaded again', async () => {
    const first = await declare('One at a time')
    expect(await declare('One at a time')).toBe(first)
  })

  test('is refused with another description', async () => {
    await declare('One at a time')
    await expect(declare('Something else')).rejects.toMatchObject({
      code: 'LOCK_NAMESPACE_DUPLICATE',
      details: { subject: 'reloaded' },
    })
  })

  test('is refused without a name or a description', () => {
    const code = 'LOCK_KEY_INVALID'
    expect(() => lockNamespace('', 'None')).toThrow(expect.objectContaining({ code }))
    expect(() => lockNamespace(7 as never, 'None')).toThrow(expect.objectContaining({ code }))
    expect(() => lockNamespace('undescribed', undefined as never)).toThrow(
      expect.objectContaining({
        code: 'OPTION_INVALID',
        details: expect.objectContaining({ option: 'about' }),
      }),
    )
  })
})

test('U4: two copies in one process know of each other, and listen to a pool once', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-copies-'))
  const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
  try {
    for (const copy of ['first', 'second'])
      await cp(path('../../../src'), join(folder, copy), { recursive: true })
    await symlink(path('../../../../../node_modules'), join(folder, 'node_modules'))
    await writeFile(join(folder, 'package.json'), '{ "type": "module" }')
    await writeFile(join(folder, 'main.ts'), await readFile(path('../../support/two-copies.ts')))
    const { stdout } = await promisify(execFile)(process.execPath, ['main.ts'], { cwd: folder })
    expect(JSON.parse(stdout)).toEqual({
      isAnother: true,
      sameNamespace: true,
      listed: ['twice'],
      connectWrapped: 1,
      listenersAdded: 0,
      nested: 'TX_NESTED',
      traced: true,
    })
  } finally {
    await rm(folder, { recursive: true })
  }
})

/** What a second copy may have for itself: it remembers what can be found out, or what only its own objects know. */
const ownState: Readonly<Record<string, string>> = {
  'core/activity.ts': 'what is under way in a Holdfast of this copy',
  'core/bucket.ts': 'the last bucket that was worked out',
  'drivers/innodb/innodb-commit.ts': 'statements prepared with the savepoint name of this copy',
  'drivers/kysely-mysql.ts': 'connections of handles of this copy',
  'drivers/pg/pg-leash.ts': 'statements of a transaction of this copy',
  'drivers/pg/pg-prepared.ts': 'names by the text that they are made from',
  'engines/innodb/locks/lock-table-fit.ts': 'tables that were seen once',
  'engines/innodb/once/once-keys.ts': 'calls of this copy',
  'engines/innodb/rows/table-fit.ts': 'tables that were seen once',
  'engines/innodb/schema/own-table.ts': 'tables that were seen once',
  'engines/postgres/claims/texts.ts': 'texts',
  'engines/postgres/locks/taking.ts': 'drivers whose locks were seen once',
  'engines/postgres/shards/shards.ts': 'texts',
  'engines/postgres/sql/own-operators.ts': 'texts',
  'engines/sqlite/once/once-keys.ts': 'calls of this copy',
  'leases/held-lease.ts': 'signals of leases of this copy',
  'ledger/account-id.ts': 'hashes',
  'locks/locks.ts': 'drivers whose level was seen once',
  'schema/catalogue.ts': 'a file that was read',
  'schema/schema-files.ts': 'files that were read',
  'tx/ask-each.ts': 'questions of this copy that are under way',
  'tx/started-within.ts': 'transactions of this copy, by its own drivers',
  'tx/warn-unreachable.ts': 'when this copy last said so',
}

test('U4: every other state of a module is kept by processWide, or is listed here', () => {
  const state =
    /^(?:export )?(?:let \w+|const \w+(?:: [^=]+)? = new (?:Map<|WeakMap|WeakSet|Set<|AsyncLocalStorage))/m
  const src = fileURLToPath(new URL('../../../src', import.meta.url))
  const found = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .filter((path) => state.test(readFileSync(join(src, path), 'utf8')))
  expect(found.toSorted()).toEqual(Object.keys(ownState))
})
