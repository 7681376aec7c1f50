import type { Argument, Command, Flag } from './command.ts'
import { commands } from './commands/index.ts'

const settings: Readonly<Record<string, Flag>> = {
  schema: {
    type: 'string',
    value: '<name>',
    about: 'Name of the schema; else HOLDFAST_SCHEMA, else holdfast',
  },
  config: {
    type: 'string',
    value: '<file>',
    about:
      'Configuration; else HOLDFAST_CONFIG, else holdfast.config.json, .ts, .js or .mjs here or above, in this project',
  },
}

const common: Readonly<Record<string, Flag>> = {
  json: { type: 'boolean', about: 'Print the result as JSON' },
  help: { type: 'boolean', about: 'Print this' },
}

const connection: Readonly<Record<string, Flag>> = {
  'database-url': {
    type: 'string',
    value: '<url>',
    about:
      'Where to connect. Other users of the machine can see it: better set HOLDFAST_DATABASE_URL or DATABASE_URL, in the environment or in .env',
  },
}

/** Every flag a command understands. */
export function flagsOf(command: Command): Readonly<Record<string, Flag>> {
  return {
    ...command.flags,
    ...(command.needsDatabase ? connection : {}),
    ...(command.readsSettings === false ? {} : settings),
    ...common,
  }
}

/** What `holdfast --help` prints. */
export function usage(): string {
  const list = commands.map((command) => [synopsis(command), command.about] as const)
  return `Usage: holdfast <command> [flags]\n\n${columns(list)}\nholdfast <command> --help lists the flags of a command.\n`
}

function synopsis({ name, args = [], runsCommand }: Command): string {
  return [name, ...args.map(argumentText), ...(runsCommand === true ? ['-- <command>'] : [])].join(
    ' ',
  )
}

function argumentText({ name, words, optional }: Argument): string {
  const text = words === undefined ? `<${name}>` : words.join('|')
  return optional === true ? `[${text}]` : text
}

/** What `holdfast <command> --help` prints. */
export function usageOf(command: Command): string {
  const flags = command.handsOn === true ? [] : Object.entries(flagsOf(command))
  const list = [
    ...(command.args ?? []).map((arg) => [argumentText(arg), arg.about] as const),
    ...flags.map(([name, flag]) => {
      const value = flag.bare === undefined ? flag.value : `[${flag.value}]`
      const shown = value === undefined ? `--${name}` : `--${name} ${value}`
      return [shown, flag.required === true ? `${flag.about} (required)` : flag.about] as const
    }),
  ]
  const line =
    command.runsCommand === true
      ? `${command.name} [flags] -- <command>`
      : `${synopsis(command)} [flags]`
  return `Usage: holdfast ${line}\n\n${command.about}.\n${list.length === 0 ? '' : `\n${columns(list)}`}`
}

function columns(list: readonly (readonly [string, string])[]): string {
  const width = Math.max(...list.map(([left]) => left.length))
  return list.map(([left, right]) => `  ${left.padEnd(width)}  ${right}\n`).join('')
}
