import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { commands } from '../../src/commands/index.ts'
import { flagsOf } from '../../src/usage.ts'

const page = readFileSync(new URL('../../../../docs/cli.md', import.meta.url), 'utf8')

describe.each(commands.map((command) => [command.name, command] as const))(
  'docs/cli.md, %s',
  (name, command) => {
    test('has the command', () => {
      expect(page).toMatch(new RegExp(`\\| .*\`${name}[ \`]`))
    })

    test('has its flags', () => {
      const missing = Object.keys(flagsOf(command)).filter((flag) => !page.includes(`--${flag}`))
      expect(missing).toEqual([])
    })
  },
)
