import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { Call, Command } from '../command.ts'
import { isOwn } from '../settings/is-own.ts'
import { Failed, failed, Misuse } from '../failure.ts'

export const console: Command = {
  name: 'console',
  about: 'The same in the browser, by @holdfast/console; flags are handed on to it',
  needsDatabase: true,
  handsOn: true,
  flags: {},
  async run(call) {
    const program = findConsole(call.around.folder)
    if (program === undefined) {
      throw new Failed({
        code: 'CONSOLE_MISSING',
        message: 'The console is a package of its own, which is not installed here.',
        next: 'Run `npm install --save-dev @holdfast/console`, or without installing it `npx @holdfast/console`.',
      })
    }
    return await runConsole(program, call)
  },
}

/** Not among our dependencies: whoever wants a browser installs it. */
const packageName = '@holdfast/console'

/** Installed beside the project that we are run in, or beside ourselves. @throws Misuse */
function findConsole(folder: string): string | undefined {
  for (const from of [join(folder, 'package.json'), import.meta.url]) {
    let found: string | undefined
    try {
      const require = createRequire(from)
      const manifest = require.resolve(`${packageName}/package.json`)
      const { bin } = require(manifest) as { readonly bin: Readonly<Record<string, string>> }
      const [program] = Object.values(bin)
      if (program !== undefined) found = join(dirname(manifest), program)
    } catch {
      // Not there; the next place may have it.
    }
    if (found !== undefined && isOwn(found)) return found
    if (found !== undefined) {
      throw new Misuse(
        `${found} belongs to another user. If you trust it, run it yourself with node.`,
      )
    }
  }
  return undefined
}

/** What the configuration file says becomes flags and variables that ours and the caller's go before. */
async function runConsole(
  program: string,
  { config, rest, around, databaseUrl, schema }: Call,
): Promise<number> {
  const configured = Object.entries(config.console ?? {}).flatMap(([name, value]) =>
    value === true ? [`--${name}`] : value === false ? [] : [`--${name}`, String(value)],
  )
  const { environment } = around
  const child = spawn(process.execPath, [program, ...configured, ...rest], {
    stdio: 'inherit',
    env: {
      ...environment,
      ...(databaseUrl === undefined ? {} : { HOLDFAST_DATABASE_URL: databaseUrl }),
      ...(schema === undefined ? {} : { HOLDFAST_SCHEMA: schema }),
    },
  })
  // A signal from a terminal reaches both; one that is sent to us alone is handed on.
  const stop = around.stopSignal()
  stop.addEventListener('abort', () => child.kill(String(stop.reason) as NodeJS.Signals))
  return await new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code) => resolve(code ?? failed))
  })
}
