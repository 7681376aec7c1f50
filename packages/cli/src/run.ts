import { readFileSync } from 'node:fs'
import { isHoldfastError } from 'holdfast/errors'
import type { Call, Command, Surroundings } from './command.ts'
import { commands } from './commands/index.ts'
import { type Config, findConfig, readConfig } from './settings/config.ts'
import { done, Failed, failed, type Failure, failureOf, Misuse, misused } from './failure.ts'
import { nearest } from './nearest.ts'
import { type Line, readLine } from './read-line.ts'
import { settingsOf } from './settings/settings.ts'
import { cleanJson, cleanLines } from './terminal/clean-text.ts'
import { flagsOf, usage, usageOf } from './usage.ts'

/** Who waits for longer is told for what. */
const silentMs = 2_000

/** Runs one command line and gives the exit code. Never throws. */
export async function run(typed: readonly string[], around: Surroundings): Promise<number> {
  const [first, ...rest] = typed
  const asJson = jsonIn(typed)
  if (first === '--help' || first === '-h' || first === 'help') return say(around, usage(), asJson)
  if (first === '--version') {
    around.out(asJson ? `${cleanJson({ version: ownVersion() })}\n` : `${ownVersion()}\n`)
    return done
  }
  const command = commands.find(({ name }) => name === first)
  if (command === undefined) {
    if (first?.startsWith('-') === true) {
      return misuse('The command comes first, and its flags after it.', undefined, typed, around)
    }
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
  if (line.flags['help'] === true) return say(around, usageOf(command), asJson)
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
    const config = command.readsSettings === false ? {} : await configOf(line, around)
    const code = await command.run(callOf(command, line, config, around, progress))
    progress.end()
    return code
  } catch (error) {
    progress.end()
    const wrong = error instanceof Misuse ? error.message : wrongValue(error, command, line)
    if (wrong !== undefined) return misuse(wrong, command, typed, around)
    const failure =
      error instanceof Failed ? error.failure : failureOf(error, command.needsDatabase)
    const text = [`holdfast ${command.name}: ${failure.message}`, failure.next]
    around.err(
      asJson
        ? `${cleanJson({ error: failure })}\n`
        : `${cleanLines(text.filter((each) => each !== '').join('\n'))}\n`,
    )
    return error instanceof Failed ? error.exitCode : failed
  }
}

/** Before the line is read, or if it cannot be; what follows `--` is for others. */
function jsonIn(typed: readonly string[]): boolean {
  return (typed.includes('--') ? typed.slice(0, typed.indexOf('--')) : typed).includes('--json')
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
  around.err(
    jsonIn(typed) ? `${cleanJson({ error: failure })}\n` : `${cleanLines(message)}\n\n${shown}`,
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
    const url = urlFor(command)
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
        const { observerOf } = await import('./product.ts')
        return await use(await observerOf(driver, { schema, claims: config.claims ?? [] }), driver)
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

function say(around: Surroundings, text: string, asJson: boolean): number {
  around.out(asJson ? `${cleanJson({ usage: text })}\n` : text)
  return done
}

function ownVersion(): string {
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  return (JSON.parse(manifest) as { readonly version: string }).version
}
