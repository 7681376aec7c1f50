import { parseArgs } from 'node:util'
import type { ConsoleToken } from '../auth/tokens.ts'
import type { Action } from '../core/wire.ts'
import { allActions } from '../server/actions.ts'
import { checkedBase } from '../http/base-path.ts'
import { checkedOrigin } from '../http/cookie.ts'
import type { TrustProxy } from '../http/trusted-proxies.ts'

export const usage: string = `Usage: npx @holdfast/console [flags] [<name>=<url> …]

Shows who blocks whom in a database, by name, in the browser: PostgreSQL, MariaDB or MySQL.

  --database-url <url>  The database. Other users of the machine can see it: better set
                        HOLDFAST_DATABASE_URL or DATABASE_URL. Several: <name>=<url>, or lines of the variable
  --port <port>         Default 4873
  --host <address>      Where to listen; default 127.0.0.1, this machine only
  --public-url <url>    How browsers reach it through a proxy: https://ops.example.com/holdfast
  --trust-proxy <list>  Proxies in front whose x-forwarded-for is believed: how many, or their addresses
                        Default none
  --schema <name>       Where Holdfast's tables are; default holdfast, on MariaDB and MySQL the database of
                        the URL
  --actions <list>      What the role operate may do, of: ${allActions.join(', ')}
                        Default nothing
  --redact              Mask keys, and values in queries
  --login-link          Print an address that logs in once, also where this is no terminal but a log
  --history <minutes>   How far one can look back; default 15
  --help                Print this
  --version             Print the version

Tokens come from the environment, at least 20 characters each:
  HOLDFAST_CONSOLE_VIEW_TOKEN, HOLDFAST_CONSOLE_OPERATE_TOKEN, HOLDFAST_CONSOLE_METRICS_TOKEN
Without any, in a terminal, an address is printed that logs in once; Enter prints another.
HOLDFAST_CONSOLE_SECRET, at least 32 characters, keeps masks over a restart.

Exit codes: 0 stopped, 1 it could not start, 2 the command line was not understood.
`

/** The command line was not understood; the message says why, and repeats nothing that could be a secret. */
export class Misuse extends Error {}

/** What was asked for. */
export interface Wish {
  readonly help: boolean
  readonly version: boolean
  readonly databases: Readonly<Record<string, string>>
  readonly port: number
  readonly host: string
  readonly publicUrl: URL | undefined
  readonly base: string
  readonly trustProxy: TrustProxy | undefined
  readonly schema: string | undefined
  readonly actions: readonly Action[]
  readonly redact: boolean
  readonly loginLink: boolean
  readonly historyMinutes: number
  readonly tokens: readonly ConsoleToken[]
  readonly secret: string | undefined
}

type Environment = Readonly<Record<string, string | undefined>>

const flags = {
  'database-url': { type: 'string' },
  port: { type: 'string' },
  host: { type: 'string' },
  'public-url': { type: 'string' },
  'trust-proxy': { type: 'string' },
  schema: { type: 'string' },
  actions: { type: 'string' },
  redact: { type: 'boolean' },
  'login-link': { type: 'boolean' },
  history: { type: 'string' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean' },
} as const

/** Reads flags first, then the environment. @throws Misuse */
export function wishOf(args: readonly string[], environment: Environment): Wish {
  const { values, positionals } = parsed(args)
  const empty = Object.entries(values).find(([, value]) => value === '')
  if (empty !== undefined) throw new Misuse(`--${empty[0]} is empty.`)
  const help = values.help === true
  const version = values.version === true
  const publicUrl = publicUrlOf(values['public-url'])
  return {
    help,
    version,
    databases: help || version ? {} : databasesOf(positionals, values['database-url'], environment),
    port: numberOf(values.port ?? '4873', 'port', 65_535),
    host: values.host ?? '127.0.0.1',
    publicUrl,
    base: baseOf(publicUrl),
    trustProxy: trustProxyOf(values['trust-proxy']),
    schema: values.schema ?? (environment['HOLDFAST_SCHEMA'] || undefined),
    actions: actionsOf(values.actions),
    redact: values.redact === true,
    loginLink: values['login-link'] === true,
    historyMinutes: Math.max(1, numberOf(values.history ?? '15', 'history', 1_440)),
    tokens: tokensOf(environment),
    secret: environment['HOLDFAST_CONSOLE_SECRET'] || undefined,
  }
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: flags, allowPositionals: true })
  } catch (error) {
    // The first sentence names the flag, and no value.
    const [sentence = ''] = (error as Error).message.split(/[.:] |\n/)
    throw new Misuse(`${sentence.slice(0, 100)}.`)
  }
}

function databasesOf(
  positionals: readonly string[],
  flag: string | undefined,
  environment: Environment,
): Record<string, string> {
  const texts =
    positionals.length > 0
      ? positionals
      : [flag ?? (environment['HOLDFAST_DATABASE_URL'] || environment['DATABASE_URL']) ?? '']
          .flatMap((text) => text.split(/\s+/))
          .filter((text) => text !== '')
  if (texts.length === 0) {
    throw new Misuse('A database is needed: set DATABASE_URL or pass --database-url.')
  }
  const databases: Record<string, string> = {}
  for (const text of texts) {
    const [, name = 'main', url = ''] = /^(?:([\w.-]{1,40})=)?(.+)$/.exec(text) ?? []
    if (!/^postgres(ql)?:\/\//.test(url) && !isMysqlUrl(url)) {
      throw new Misuse('A database is written postgres://…, mysql://… or <name>=postgres://…')
    }
    if (isAmbiguous(url)) {
      throw new Misuse(
        'The URL of a database cannot be read: in it, @ is %40, / is %2F, ? is %3F and # is %23.',
      )
    }
    if (Object.hasOwn(databases, name)) throw new Misuse('Two databases have the same name.')
    databases[name] = url
  }
  return databases
}

/** Whether it leads to MariaDB or MySQL. */
export function isMysqlUrl(url: string): boolean {
  return /^(?:mysql|mariadb):\/\//.test(url)
}

/** A part of the password would be taken for the host, or for nothing at all. */
function isAmbiguous(url: string): boolean {
  const rest = url.slice(url.indexOf('://') + 3)
  const end = rest.search(/[/?]/)
  const isReadable = URL.canParse(url) || URL.canParse(url.replace('@/', '@localhost/'))
  return !isReadable || rest.includes('#') || (end !== -1 && rest.includes('@', end))
}

function tokensOf(environment: Environment): ConsoleToken[] {
  return (['view', 'operate', 'metrics'] as const).flatMap((role) => {
    const token = environment[`HOLDFAST_CONSOLE_${role.toUpperCase()}_TOKEN`]
    return token === undefined || token === '' ? [] : [{ name: role, role, token }]
  })
}

function actionsOf(list: string | undefined): Action[] {
  const names = (list ?? '').split(',').filter((name) => name !== '')
  return names.map((name) => {
    const action = allActions.find((one) => one === name)
    if (action === undefined) throw new Misuse(`--actions takes any of ${allActions.join(', ')}.`)
    return action
  })
}

function numberOf(text: string, flag: string, atMost: number): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= atMost) return Number(text)
  throw new Misuse(`--${flag} takes a whole number up to ${atMost}.`)
}

function publicUrlOf(text: string | undefined): URL | undefined {
  if (text === undefined) return undefined
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '') {
    throw new Misuse('--public-url takes an address like https://ops.example.com/holdfast.')
  }
  try {
    checkedOrigin(url.origin)
  } catch {
    throw new Misuse(
      '--public-url must be https: without it, tokens and cookies can be read on the way.',
    )
  }
  return url
}

function trustProxyOf(text: string | undefined): TrustProxy | undefined {
  if (text === undefined) return undefined
  return /^\d{1,2}$/.test(text) ? Number(text) : text.split(',')
}

function baseOf(publicUrl: URL | undefined): string {
  try {
    return checkedBase(publicUrl?.pathname ?? '')
  } catch (error) {
    throw new Misuse(`--public-url: ${(error as Error).message}.`)
  }
}
