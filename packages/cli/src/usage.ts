import type { Command, Flag } from './command.ts'
import { commands } from './commands/index.ts'

const common: Readonly<Record<string, Flag>> = {
  schema: {
    type: 'string',
    value: '<name>',
    about: 'Name of the schema; else HOLDFAST_SCHEMA, else holdfast',
  },
  json: { type: 'boolean', about: 'Print the result as JSON' },
  help: { type: 'boolean', about: 'Print this' },
}

const connection: Readonly<Record<string, Flag>> = {
  'database-url': {
    type: 'string',
    value: '<url>',
    about: 'Where to connect; else DATABASE_URL, which other users of the machine cannot see',
  },
}

/** Every flag a command understands. */
export function flagsOf(command: Command): Readonly<Record<string, Flag>> {
  return { ...command.flags, ...(command.needsDatabase ? connection : {}), ...common }
}

/** What `holdfast --help` prints. */
export function usage(): string {
  const list = commands.map(({ name, about }) => [name, about] as const)
  return `Usage: holdfast <command> [flags]\n\n${columns(list)}\nholdfast <command> --help lists the flags of a command.\n`
}

/** What `holdfast <command> --help` prints. */
export function usageOf(command: Command): string {
  const flags = Object.entries(flagsOf(command))
  const list = flags.map(([name, flag]) => {
    const shown = flag.value === undefined ? `--${name}` : `--${name} ${flag.value}`
    return [shown, flag.required === true ? `${flag.about} (required)` : flag.about] as const
  })
  return `Usage: holdfast ${command.name} [flags]\n\n${command.about}.\n\n${columns(list)}`
}

function columns(list: readonly (readonly [string, string])[]): string {
  const width = Math.max(...list.map(([left]) => left.length))
  return list.map(([left, right]) => `  ${left.padEnd(width)}  ${right}\n`).join('')
}
