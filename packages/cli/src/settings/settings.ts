import type { Call, Command, Surroundings } from '../command.ts'
import type { Config } from './config.ts'
import { checkedAnyUrl, checkedUrl, invalidUrl } from './database-url.ts'
import { readEnvFile } from './env-file.ts'
import { Misuse } from '../failure.ts'

const urlVariables = ['HOLDFAST_DATABASE_URL', 'DATABASE_URL']

/** What was set, wherever that was: flags over environment over `.env` over configuration file. */
export interface Settings {
  readonly schema: string | undefined
  /** As it is; not checked. */
  readonly databaseUrl: string | undefined
  /** @throws Misuse, Failed */
  urlFor(command: Pick<Command, 'name' | 'onMysql'>): string
}

export function settingsOf(
  flags: Call['flags'],
  config: Config,
  { environment, folder }: Pick<Surroundings, 'environment' | 'folder'>,
): Settings {
  const file = readEnvFile(folder)
  /** The value, and where it was found. */
  const found = (
    flag: string,
    variables: readonly string[],
    configured: string | undefined,
  ): readonly [value: string, from: string] | undefined => {
    const value = flags[flag]
    if (typeof value === 'string') return [value, `--${flag}`]
    for (const [from, place] of [
      [environment, ''],
      [file.variables, ' of .env'],
    ] as const) {
      // Compose files pass those that are not set as empty ones.
      const name = variables.find((each) => (from[each] ?? '') !== '')
      if (name !== undefined) return [from[name] as string, `${name}${place}`]
    }
    const key = flag.replaceAll(/-[a-z]/g, ([, letter = '']) => letter.toUpperCase())
    return configured === undefined ? undefined : [configured, `${key} of the configuration file`]
  }
  const url = found('database-url', urlVariables, config.databaseUrl)
  return {
    schema: found('schema', ['HOLDFAST_SCHEMA'], config.schema)?.[0],
    databaseUrl: url?.[0],
    urlFor({ name: command, onMysql }) {
      if (url !== undefined) {
        const [name = '', place] = url[1].split(' of ')
        if (place === '.env' && file.cut?.includes(name) === true)
          throw invalidUrl(url[1], 'is cut off at a #')
        if (place === '.env' && /\$\{\w+\}/.test(url[0]))
          throw invalidUrl(
            url[1],
            'refers to another variable, which is not filled in here: write out its value',
          )
        return onMysql === true ? checkedAnyUrl(...url) : checkedUrl(...url)
      }
      const unread = file.unread === undefined ? '' : ` ${file.unread}.`
      throw new Misuse(
        `${command} needs a database: set DATABASE_URL, in the environment or in .env, or pass --database-url.${unread}`,
      )
    },
  }
}
