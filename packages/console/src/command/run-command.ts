import { LoginLink } from '../auth/login-link.ts'
import { ConsoleOptionError } from '../core/option-error.ts'
import { packageVersion } from '../core/package-files.ts'
import { type ListeningConsole, listen } from '../node/listen.ts'
import { assembleConsole } from '../server/create-console.ts'
import type { DatabaseSource } from '../watch/watched-database.ts'
import { Misuse, usage, type Wish, wishOf } from './flags.ts'
import { type OpenPool, openPool } from './open-pool.ts'
import { reasonOf } from './reason.ts'

/** Where a command reads and writes. */
export interface Surroundings {
  readonly environment: Readonly<Record<string, string | undefined>>
  out(text: string): unknown
  err(text: string): unknown
  /** Ends the console when it aborts. */
  readonly stop: AbortSignal
  /** Where a person reads and types; undefined where what is printed goes into a log. */
  readonly terminal?: Terminal | undefined
}

interface Terminal {
  /** Calls `hear` whenever the person presses Enter. */
  onEnter(hear: () => void): void
}

const done = 0
const failed = 1
const misused = 2
/** How often the tree is kept while nobody looks, so that one can look back at what was before. */
const backgroundMs = 5_000
const nobodyCouldLogIn = `Nobody could log in: there is no token, and this is no terminal.
Set HOLDFAST_CONSOLE_VIEW_TOKEN (openssl rand -base64 32 makes a good one), or pass --login-link to have an
address printed here that logs in once. Whoever can read this log could use it.
`
/** Runs the console until it is stopped, and gives the exit code. Never throws. */
export async function runCommand(args: readonly string[], around: Surroundings): Promise<number> {
  const { out, err } = around
  let wish: Wish
  try {
    wish = wishOf(args, around.environment)
  } catch (error) {
    if (!(error instanceof Misuse)) throw error
    err(`${error.message}\n\n${usage}`)
    return misused
  }
  if (wish.help || wish.version) {
    out(wish.help ? usage : `${packageVersion()}\n`)
    return done
  }
  if (wish.tokens.length === 0 && !wish.loginLink && around.terminal === undefined) {
    err(nobodyCouldLogIn)
    return misused
  }
  const pools = await Promise.all(
    Object.entries(wish.databases).map(async ([name, url]) => [name, await openPool(url)] as const),
  )
  try {
    const reached = await Promise.all(pools.map(([name, pool]) => reach(name, pool, err)))
    if (!reached.includes(true)) return failed
    const server = await start(wish, Object.fromEntries(pools), around)
    await stopped(around.stop)
    await server.close()
    return done
  } catch (error) {
    const known = error instanceof ConsoleOptionError
    err(`holdfast-console: ${known ? error.message : reasonOf(error)}\n`)
    return known ? misused : failed
  } finally {
    await Promise.all(pools.map(([, pool]) => pool.end()))
  }
}

async function start(
  wish: Wish,
  pools: Readonly<Record<string, OpenPool>>,
  { out, terminal }: Surroundings,
): Promise<ListeningConsole> {
  const { host, publicUrl, base, actions, tokens, secret, schema } = wish
  let address = ''
  const role = actions.length > 0 ? 'operate' : 'view'
  const loginLink =
    tokens.length > 0
      ? undefined
      : new LoginLink({ name: 'this terminal', role }, () => {
          if (terminal !== undefined) out('Somebody logged in. Press Enter for another address.\n')
        })
  // Whoever can read it can log in, so it is printed once, and then only for a person who asks.
  const linkText = (link: LoginLink): string =>
    `Open this address to log in; it works once:\n  ${address}/login#token=${link.next()}\n`
  const databases = Object.fromEntries(
    Object.entries(pools).map(([name, pool]): [string, DatabaseSource] => [
      name,
      {
        driver: pool.driver,
        ownApplication: pool.application,
        ...(schema === undefined ? {} : { schema }),
      },
    ]),
  )
  const holdfastConsole = assembleConsole(
    {
      databases,
      auth: { tokens, ...(secret === undefined ? {} : { secret }) },
      ...(base === '' ? {} : { base }),
      // Loopback names are always this machine; a page elsewhere cannot make a browser send them.
      hosts: ['localhost', '127.0.0.1', '[::1]', ...(publicUrl ? [publicUrl.host] : [])],
      origins: publicUrl ? [publicUrl.origin] : [],
      ...(wish.trustProxy === undefined ? {} : { trustProxy: wish.trustProxy }),
      redact: wish.redact,
      metrics: true,
      actions,
      history: { minutes: wish.historyMinutes, everyMs: backgroundMs },
    },
    { loginLink },
  )
  const server = await listen(holdfastConsole, { port: wish.port, host }).catch(
    (error: unknown) => {
      holdfastConsole.close()
      throw error
    },
  )
  address = publicUrl?.href.replace(/\/$/, '') ?? `http://${shownHost(host)}:${server.port}`
  out(`Holdfast console on ${address}/\n${loginLink === undefined ? '' : linkText(loginLink)}`)
  if (loginLink !== undefined) terminal?.onEnter(() => out(linkText(loginLink)))
  return server
}

async function reach(name: string, pool: OpenPool, err: Surroundings['err']): Promise<boolean> {
  try {
    await pool.reach()
    return true
  } catch (error) {
    err(`Database ${name} cannot be reached: ${reasonOf(error)}\n`)
    return false
  }
}

function shownHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return 'localhost'
  return host.includes(':') ? `[${host}]` : host
}

function stopped(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  if (signal.aborted) resolve()
  signal.addEventListener('abort', () => resolve(), { once: true })
  return promise
}
