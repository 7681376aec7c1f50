/** A flag that a command offers is one that it uses: what does nothing is refused, and not taken in silence. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { commands } from '../../src/commands/index.ts'
import { flagsOf } from '../../src/usage.ts'
import { runCommand } from '../support/run-command.ts'

const folder = new URL('../../src/commands/', import.meta.url)

/** What several commands use. */
const shared = ['../', '../settings/'].map((path) => textsIn(path, () => true)).join('\n')

/** The command's own file, those that are parts of it, and what it is made by. */
function sourceOf(name: string): string {
  const own = ['./', './ledger/', './schema/'].map((path) =>
    textsIn(path, (file) => file === `${name}.ts` || file.startsWith(`${name}-`)),
  )
  const made = own.some((text) => text.includes('listCommand('))
  return [...own, made ? textsIn('./', (file) => file === 'list-command.ts') : ''].join('\n')
}

function textsIn(path: string, wanted: (file: string) => boolean): string {
  return readdirSync(new URL(path, folder))
    .filter((file) => file.endsWith('.ts') && wanted(file))
    .map((file) => readFileSync(new URL(path + file, folder), 'utf8'))
    .join('\n')
}

describe.each(
  commands
    .filter(({ handsOn }) => handsOn !== true)
    .map((command) => [command.name, command] as const),
)('%s', (name, command) => {
  const source = sourceOf(name)
  const offered = Object.keys(flagsOf(command))

  test('reads each flag of its own', () => {
    const unread = Object.keys(command.flags).filter((flag) => {
      // Where it is declared it is a key.
      const uses = source.match(new RegExp(`['".\\s{(]${flag}\\b(?!'?: )`, 'g')) ?? []
      return uses.length === 0 && !shared.includes(`flags['${flag}']`)
    })
    expect(unread).toEqual([])
  })

  test('offers a schema, a configuration and a database if it uses them, and only then', () => {
    const usesSchema = /\bschema\b|\bobserve\b/.test(source)
    const usesDatabase = /\b(?:database|observe)\b[(,]|\burlFor\b/.test(source)
    expect(offered.includes('schema')).toBe(usesSchema)
    expect(offered.includes('config')).toBe(usesSchema || usesDatabase)
    expect(offered.includes('database-url')).toBe(command.needsDatabase)
  })

  test('refuses what it does not offer', async () => {
    const all = ['schema', 'config', 'database-url'].filter((flag) => !offered.includes(flag))
    for (const flag of all) {
      const { code, err } = await runCommand([name, `--${flag}`, 'x', '--json'])
      expect([flag, code, JSON.parse(err)]).toEqual([
        flag,
        2,
        { error: expect.objectContaining({ code: 'USAGE' }) },
      ])
    }
  })
})
