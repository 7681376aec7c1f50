import { chown, lchown, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findConfig, readConfig } from '../../src/settings/config.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-config-'))
})
afterAll(() => rm(folder, { recursive: true }))

async function written(name: string, text: string): Promise<string> {
  const file = join(folder, name)
  await writeFile(file, text)
  return file
}

test('is found upwards, the nearest first', async () => {
  const deep = join(folder, 'a', 'b')
  await mkdir(deep, { recursive: true })
  await written('package.json', '{}')
  const far = await written('holdfast.config.json', '{}')
  expect(findConfig(deep)).toBe(far)
  const near = await written('a/holdfast.config.ts', 'export default {}')
  expect(findConfig(deep)).toBe(near)
})

describe('S17: nobody else can put one there', () => {
  /** A project with a folder in it, below one that is not part of it. */
  async function project(name: string, mark: string | undefined): Promise<string> {
    await mkdir(join(folder, name, 'own', 'deep'), { recursive: true })
    await written(`${name}/holdfast.config.mjs`, 'export default {}')
    if (mark !== undefined) await written(`${name}/own/${mark}`, '{}')
    return join(folder, name, 'own', 'deep')
  }

  test.each([['.git'], ['package.json']])('above the %s of the project', async (mark) => {
    const deep = await project(`above-${mark}`, mark)
    expect(findConfig(deep)).toBeUndefined()
    const own = await written(`above-${mark}/own/holdfast.config.json`, '{}')
    expect(findConfig(deep)).toBe(own)
  })

  test('a package in a repository: up to the repository', async () => {
    const deep = await project('packages', '.git')
    await written('packages/own/deep/package.json', '{}')
    const own = await written('packages/own/holdfast.config.json', '{}')
    expect(findConfig(deep)).toBe(own)
  })

  // To give a file away one has to be root.
  describe.runIf(process.geteuid?.() === 0)('of another user', () => {
    const stranger = 65_534

    test.each(['json', 'mjs'])('a .%s is refused, unless it is named', async (ending) => {
      const deep = await project(`foreign-${ending}`, 'package.json')
      const file = await written(`foreign-${ending}/own/holdfast.config.${ending}`, '{}')
      await chown(file, stranger, stranger)
      expect(() => findConfig(deep)).toThrow(/belongs to another user.*--config/)
    })

    test('a link to a file of ours is refused too', async () => {
      const deep = await project('link', 'package.json')
      const target = await written('link/target.mjs', 'export default {}')
      await symlink(target, join(deep, 'holdfast.config.mjs'))
      expect(findConfig(deep)).toBe(join(deep, 'holdfast.config.mjs'))
      await lchown(join(deep, 'holdfast.config.mjs'), stranger, stranger)
      expect(() => findConfig(deep)).toThrow(/belongs to another user/)
    })

    test('a mark of another user makes no project', async () => {
      const deep = await project('mark', undefined)
      const mark = await written('mark/package.json', '{}')
      expect(findConfig(deep)).toBe(join(folder, 'mark', 'holdfast.config.mjs'))
      await chown(mark, stranger, stranger)
      await rm(join(folder, 'package.json'), { force: true })
      expect(findConfig(deep)).toBeUndefined()
    })
  })
})

test.each([
  ['one.json', '{ "schema": "a", "claims": [{ "table": "outbox" }], "console": { "port": 1 } }'],
  [
    'two.mjs',
    'export default { schema: "a", claims: [{ table: "outbox" }], console: { port: 1 } }',
  ],
  [
    'three.ts',
    'const port: number = 1\nexport default { schema: "a", claims: [{ table: "outbox" }], console: { port } }',
  ],
])('%s is read', async (name, text) => {
  expect(await readConfig(await written(name, text))).toEqual({
    schema: 'a',
    claims: [{ table: 'outbox' }],
    console: { port: 1 },
  })
})

describe('is refused, without a word of what is in it', () => {
  test.each([
    ['bad.json', '{ "databaseUrl": "postgres://u:s3cret@h/d"', /cannot be read \(SyntaxError\)/],
    ['typo.json', '{ "databaseURL": "postgres://u:s3cret@h/d" }', /"databaseURL" is not known/],
    ['kind.json', '{ "databaseUrl": { "url": "s3cret" } }', /databaseUrl must be a text/],
    ['list.json', '["s3cret"]', /must contain an object/],
    ['claims.json', '{ "claims": [{ "tabel": "s3cret" }] }', /claims must be a list/],
    ['throws.mjs', 'throw new Error("s3cret")', /cannot be read \(Error\)/],
  ])('%s', async (name, text, message) => {
    const reading = readConfig(await written(name, text))
    await expect(reading).rejects.toThrow(message)
    await expect(reading).rejects.not.toThrow('s3cret')
  })
})
