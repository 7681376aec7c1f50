import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { isHoldfastError } from 'holdfast/errors'
import {
  type Call,
  type Command,
  done,
  failed,
  Misuse,
  misused,
  type Surroundings,
} from './command.ts'
import { commands } from './commands/index.ts'
import { failureOf } from './failure.ts'
import { withDatabase } from './open-database.ts'
import { flagsOf, usage, usageOf } from './usage.ts'

type Flags = Call['flags']

/** Runs one command line and gives the exit code. Never throws. */
export async function run(args: readonly string[], around: Surroundings): Promise<number> {
  const [first, ...rest] = args
  if (first === '--help' || first === 'help') return say(around, usage())
  if (first === '--version') return say(around, `${ownVersion()}\n`)
  const command = commands.find(({ name }) => name === first)
  if (command === undefined) {
    // What was typed is repeated only if it is a word: it may be a database URL.
    const shown = /^[\w-]{1,40}$/.test(first ?? '') ? `: ${first}` : ''
    const reason = first === undefined ? 'A command is needed' : `No such command${shown}`
    around.err(`${reason}.\n\n${usage()}`)
    return misused
  }
  let flags: Flags
  try {
    flags = readFlags(command, rest)
  } catch (error) {
    around.err(`${misuseOf(error)}\n\n${usageOf(command)}`)
    return misused
  }
  if (flags['help'] === true) return say(around, usageOf(command))
  return attempt(command, flags, around)
}

async function attempt(command: Command, flags: Flags, around: Surroundings): Promise<number> {
  const asJson = flags['json'] === true
  try {
    return await command.run(callOf(command, flags, around))
  } catch (error) {
    const misuse = error instanceof Misuse ? error.message : wrongValue(error)
    if (misuse !== undefined) {
      around.err(`${misuse}\n\n${usageOf(command)}`)
      return misused
    }
    const failure = failureOf(error)
    const text = [`holdfast ${command.name}: ${failure.message}`, failure.next]
    around.err(
      asJson
        ? `${JSON.stringify({ error: failure })}\n`
        : `${text.filter((line) => line !== '').join('\n')}\n`,
    )
    return failed
  }
}

/** The library says it of its options, which are our flags. */
function wrongValue(error: unknown): string | undefined {
  if (!isHoldfastError(error, 'OPTION_INVALID')) return undefined
  const [name = '', ...rest] = String(error.details['subject']).split(' ')
  return [`--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`, ...rest, '']
    .join(' ')
    .replace(/ $/, '.')
}

function callOf(command: Command, flags: Flags, { environment, out, err }: Surroundings): Call {
  const text = (flag: string, variable: string): string | undefined => {
    const value = flags[flag]
    return typeof value === 'string' ? value : environment[variable] || undefined
  }
  const asJson = flags['json'] === true
  return {
    flags,
    schema: text('schema', 'HOLDFAST_SCHEMA'),
    print: (result, words) => out(asJson ? `${JSON.stringify(result)}\n` : words),
    tell: (line) => {
      if (!asJson) err(`${line}\n`)
    },
    database: (use) => {
      const url = text('database-url', 'DATABASE_URL')
      if (url === undefined) {
        throw new Misuse(
          `${command.name} needs a database: set DATABASE_URL or pass --database-url.`,
        )
      }
      return withDatabase(url, use)
    },
  }
}

/** @throws if a flag is unknown, lacks its value or is missing */
function readFlags(command: Command, args: readonly string[]): Flags {
  const known = flagsOf(command)
  const options = Object.fromEntries(
    Object.entries(known).map(([name, { type }]) => [name, { type }]),
  )
  const { values } = parseArgs({ args: [...args], options, strict: true, allowPositionals: false })
  const flags = values as Flags
  const missing = Object.entries(known).find(
    ([name, { required }]) => required === true && flags[name] === undefined,
  )
  if (missing !== undefined && flags['help'] !== true)
    throw new Misuse(`--${missing[0]} is needed.`)
  return flags
}

/** The first sentence; an argument that belongs to no flag is not repeated. */
function misuseOf(error: unknown): string {
  const { code, message } = error as Error & { readonly code?: string }
  if (code === 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL') return 'Only flags can follow the command.'
  return `${(message.split(/\.\s|\n/)[0] as string).replace(/\.$/, '')}.`
}

function say(around: Surroundings, text: string): number {
  around.out(text)
  return done
}

function ownVersion(): string {
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(manifest) as { readonly version: string }).version
}
