import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findConfig, readConfig } from '../../src/config.ts'

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
  const far = await written('holdfast.config.json', '{}')
  expect(findConfig(deep)).toBe(far)
  const near = await written('a/holdfast.config.ts', 'export default {}')
  expect(findConfig(deep)).toBe(near)
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
