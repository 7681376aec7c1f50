import { readFileSync } from 'node:fs'
import { isHoldfastError } from 'holdfast/errors'
import {
  type Call,
  type Command,
  done,
  Failed,
  failed,
  Misuse,
  misused,
  type Surroundings,
} from './command.ts'
import { commands } from './commands/index.ts'
import { type Config, findConfig, readConfig } from './config.ts'
import { type Failure, failureOf } from './failure.ts'
import { nearest } from './nearest.ts'
import { type Line, readLine } from './read-line.ts'
import { settingsOf } from './settings.ts'
import { cleanJson, cleanLines } from './terminal/clean-text.ts'
import { flagsOf, usage, usageOf } from './usage.ts'

/** Who waits for longer is told for what. */
const silentMs = 2_000

/** Runs one command line and gives the exit code. Never throws. */
export async function run(typed: readonly string[], around: Surroundings): Promise<number> {
  const [first, ...rest] = typed
  if (first === '--help' || first === '-h' || first === 'help') return say(around, usage())
  if (first === '--version') return say(around, `${ownVersion()}\n`)
  const command = commands.find(({ name }) => name === first)
  if (command === undefined) {
    // What was typed is repeated only if it is a word: it may be a database URL.
    const shown = /^[\w-]{1,40}$/.test(first ?? '') ? `: ${first}` : ''
    const reason = first === undefined ? 'A command is needed' : `No such command${shown}`
    const names = commands.map(({ name }) => name)
    return misuse(`${reason}.${meant(first ?? '', names, '')}`, undefined, typed, around)
  }
  let line: Line
  try {
    line = readLine(command, rest)
  } catch (error) {
    return misuse(misuseOf(error, command), command, typed, around)
  }
  if (line.flags['help'] === true) return say(around, usageOf(command))
  return attempt(command, line, typed, around)
}

async function attempt(
  command: Command,
  line: Line,
  typed: readonly string[],
  around: Surroundings,
): Promise<number> {
  const asJson = line.flags['json'] === true
  const progress = progressOn(around, asJson)
  try {
    const config = await configOf(line, around)
    const code = await command.run(callOf(command, line, config, around, progress))
    progress.end()
    return code
  } catch (error) {
    progress.end()
    const wrong = error instanceof Misuse ? error.message : wrongValue(error, command, line)
    if (wrong !== undefined) return misuse(wrong, command, typed, around)
    const failure = error instanceof Failed ? error.failure : failureOf(error)
    const text = [`holdfast ${command.name}: ${failure.message}`, failure.next]
    around.err(
      asJson
        ? `${cleanJson({ error: failure })}\n`
        : `${cleanLines(text.filter((each) => each !== '').join('\n'))}\n`,
    )
    return error instanceof Failed ? error.exitCode : failed
  }
}

/** Tells what was not understood: as JSON if that was asked for, though the line may not be readable as a whole. */
function misuse(
  message: string,
  command: Command | undefined,
  typed: readonly string[],
  around: Surroundings,
): number {
  const help = ['holdfast', command?.name, '--help'].filter((word) => word !== undefined).join(' ')
  const failure: Failure = { code: 'USAGE', message, next: `Run \`${help}\`.` }
  const shown = command === undefined ? usage() : usageOf(command)
  const ours = typed.includes('--') ? typed.slice(0, typed.indexOf('--')) : typed
  around.err(
    ours.includes('--json')
      ? `${cleanJson({ error: failure })}\n`
      : `${cleanLines(message)}\n\n${shown}`,
  )
  return misused
}

/** The library says it of an option, which may be a flag of ours; its message need not begin with the name. */
function wrongValue(error: unknown, command: Command, line: Line): string | undefined {
  if (!isHoldfastError(error, 'OPTION_INVALID')) return undefined
  const { option, subject } = error.details as {
    readonly option?: string
    readonly subject: string
  }
  const flag = option?.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
  if (option === undefined || flag === undefined) return `${subject}.`
  if (!Object.hasOwn(command.flags, flag) && line.flags[flag] === undefined) return `${subject}.`
  return subject.startsWith(`${option} `)
    ? `--${flag}${subject.slice(option.length)}.`
    : `--${flag}: ${subject}.`
}

async function configOf({ flags }: Line, { environment, folder }: Surroundings): Promise<Config> {
  const named = flags['config'] ?? (environment['HOLDFAST_CONFIG'] || undefined)
  const file = typeof named === 'string' ? named : findConfig(folder)
  return file === undefined ? {} : await readConfig(file)
}

function callOf(
  command: Command,
  line: Line,
  config: Config,
  around: Surroundings,
  progress: Progress,
): Call {
  const { out, err } = around
  const asJson = line.flags['json'] === true
  const { schema, databaseUrl, urlFor } = settingsOf(line.flags, config, around)
  const database: Call['database'] = async (use) => {
    const url = urlFor(command.name)
    // Only now: --help must not wait for a client to load, nor fail without one.
    const { connectLimitMs, withDatabase } = await import('./open-database.ts')
    const seconds = connectLimitMs / 1_000
    const told = setTimeout(
      () => progress.show(`Waiting for the database to answer, for at most ${seconds} s.`),
      silentMs,
    )
    try {
      return await withDatabase(
        url,
        async (driver) => {
          clearTimeout(told)
          progress.end()
          return await use(driver)
        },
        { first: true },
      )
    } finally {
      clearTimeout(told)
    }
  }
  const printed = (result: object, words: string): void => {
    progress.end()
    out(asJson ? `${cleanJson(result)}\n` : words)
  }
  return {
    ...line,
    schema,
    databaseUrl,
    config,
    asJson,
    around,
    print: (result, words) => printed(result, cleanLines(words)),
    printExact: printed,
    printPainted: printed,
    tell: (text) => {
      if (!asJson) err(`${cleanLines(text)}\n`)
    },
    progress: progress.show,
    database,
    observe: (use) =>
      database(async (driver) => {
        const { createObserver } = await import('holdfast/observe')
        const options = schema === undefined ? {} : { schema }
        return await use(
          createObserver(driver, { ...options, claims: config.claims ?? [] }),
          driver,
        )
      }),
  }
}

interface Progress {
  show(line: string): void
  end(): void
}

/** One line that is written over while a person looks; else a line for each step. */
function progressOn({ terminal, err }: Surroundings, asJson: boolean): Progress {
  let shown = false
  return {
    show(line) {
      if (asJson) return
      if (!terminal.isTold) {
        err(`${cleanLines(line)}\n`)
        return
      }
      err(`\r\u001B[2K${cleanLines(line)}`)
      shown = true
    },
    end() {
      if (shown) err('\r\u001B[2K')
      shown = false
    },
  }
}

/** The first sentence; an argument that belongs to no flag is not repeated. */
function misuseOf(error: unknown, command: Command): string {
  const { code, message } = error as Error & { readonly code?: string }
  if (code === 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL') return 'Only flags can follow the command.'
  const told = `${(message.split(/\.\s|\n/)[0] as string).replace(/\.$/, '')}.`
  if (code !== 'ERR_PARSE_ARGS_UNKNOWN_OPTION') return told
  const [, flag = ''] = /'--([\w-]+)/.exec(message) ?? []
  return `${told}${meant(flag, Object.keys(flagsOf(command)), '--')}`
}

function meant(typed: string, words: readonly string[], before: string): string {
  const word = nearest(typed, words)
  return word === undefined ? '' : ` Did you mean ${before}${word}?`
}

function say(around: Surroundings, text: string): number {
  around.out(text)
  return done
}

function ownVersion(): string {
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(manifest) as { readonly version: string }).version
}
