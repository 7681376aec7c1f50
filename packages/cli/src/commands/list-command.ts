import type { Observer } from 'holdfast/observe'
import type { Command } from '../command.ts'
import { done } from '../failure.ts'
import { numberOf } from '../number-flag.ts'
import { type Look, lookOf } from '../render/look.ts'

/** A command that lists what an observer sees, at most so much of it; its name is that of the list in JSON, too. */
export function listCommand<T>(
  name: string,
  about: string,
  read: (observer: Observer, limit: number) => Promise<readonly T[]>,
  render: (found: readonly T[], look: Look) => readonly string[],
): Command {
  return {
    name,
    about,
    needsDatabase: true,
    flags: { limit: { type: 'string', value: '<n>', about: 'How many; default: 100' } },
    async run({ flags, around, observe, printPainted }) {
      const limit = numberOf(flags['limit'], 'limit') ?? 100
      const { terminal } = around
      await observe(async (observer) => {
        const found = await read(observer, limit)
        printPainted({ [name]: found }, `${render(found, lookOf(terminal)).join('\n')}\n`)
      })
      return done
    },
  }
}
