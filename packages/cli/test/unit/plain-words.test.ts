/** What `--help` says, in plain words; that the check goes red is shown where it lives. */
import { expect, test } from 'vitest'
import { checkPlainWords } from '../../../holdfast/test/unit/tidy/plain-words.ts'
import { commands } from '../../src/commands/index.ts'

test.each(commands.map((command) => [command.name, command] as const))('of %s', (name, command) => {
  const about = [command, ...(command.args ?? []), ...Object.values(command.flags)].map(
    (each) => each.about,
  )
  expect(about.flatMap((text) => checkPlainWords({ place: name, text }))).toEqual([])
})
