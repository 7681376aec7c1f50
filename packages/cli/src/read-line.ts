import { parseArgs } from 'node:util'
import type { Argument, Call, Command } from './command.ts'
import { flagsOf } from './usage.ts'
import { Misuse } from './failure.ts'

/** What was typed after the command. */
export type Line = Pick<Call, 'flags' | 'args' | 'rest'>

/** @throws if a flag is unknown, lacks its value or is missing, or if there are too many or few arguments */
export function readLine(command: Command, line: readonly string[]): Line {
  if (command.handsOn === true) {
    // Ours only for what we say ourselves, before it is handed on.
    return { flags: { json: line.includes('--json') }, args: {}, rest: line }
  }
  const end = command.runsCommand === true ? line.indexOf('--') : -1
  const typed = end === -1 ? line : line.slice(0, end)
  const rest = end === -1 ? [] : line.slice(end + 1)
  const known = flagsOf(command)
  const options = Object.fromEntries(
    Object.entries(known).map(([name, { type }]) => [name, { type }]),
  )
  const { values, positionals, tokens } = parseArgs({
    args: withBareValues(known, typed),
    options,
    strict: true,
    allowPositionals: command.args !== undefined || command.runsCommand === true,
    tokens: true,
  })
  if (command.runsCommand === true && positionals.length > 0) {
    throw new Misuse('Put -- before the command that is to run.')
  }
  const names = tokens.flatMap((token) => (token.kind === 'option' ? token.name : []))
  const twice = names.find((name, at) => names.indexOf(name) < at)
  if (twice !== undefined) throw new Misuse(`--${twice} is given twice.`)
  const flags = values as Call['flags']
  if (flags['help'] === true) return { flags, args: {}, rest: [] }
  // One that somebody meant to fill, as with a variable of the shell that is not set.
  const empty = Object.keys(flags).find((name) => flags[name] === '')
  if (empty !== undefined) throw new Misuse(`--${empty} is empty.`)
  const missing = Object.entries(known).find(
    ([name, { required }]) => required === true && flags[name] === undefined,
  )
  if (missing !== undefined) throw new Misuse(`--${missing[0]} is needed.`)
  return { flags, args: argsOf(command.args ?? [], positionals), rest }
}

/** `parseArgs` knows no flag whose value may be left out. */
function withBareValues(known: ReturnType<typeof flagsOf>, typed: readonly string[]): string[] {
  return typed.flatMap((word, at) => {
    const bare = word.startsWith('--') ? known[word.slice(2)]?.bare : undefined
    if (bare === undefined) return [word]
    const next = typed[at + 1]
    return next === undefined || next.startsWith('-') ? [word, bare] : [word]
  })
}

/** What was typed is not repeated: it may be meant for a flag that is a secret. */
function argsOf(wanted: readonly Argument[], typed: readonly string[]): Call['args'] {
  if (typed.length > wanted.length) throw new Misuse('There are more arguments than it takes.')
  return Object.fromEntries(
    wanted.map(({ name, words, optional }, at) => {
      const word = typed[at]
      if (word === undefined) {
        if (optional === true) return [name, undefined]
        throw new Misuse(
          words === undefined ? `<${name}> is needed.` : `${words.join(' or ')} is needed.`,
        )
      }
      if (words !== undefined && !words.includes(word)) {
        throw new Misuse(`<${name}> is ${words.join(', ').replace(/, ([^,]*)$/, ' or $1')}.`)
      }
      return [name, word]
    }),
  )
}
