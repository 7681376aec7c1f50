/** `hunt` as a process, from the sources. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url))

/** Runs a program of Node that knows nothing of the test runner around it. */
export async function runNode(
  args: readonly string[],
  environment: NodeJS.ProcessEnv,
  { cwd, hears }: { readonly cwd?: string; hears?(err: string, child: ChildProcess): void } = {},
): Promise<Ended> {
  const {
    NODE_ENV: _,
    VITEST: __,
    NODE_TEST_CONTEXT: ___,
    GITHUB_ACTIONS: ____,
    ...rest
  } = process.env
  const child = spawn(process.execPath, args, {
    env: { ...rest, ...environment },
    ...(cwd !== undefined && { cwd }),
    // A group of its own, as a terminal makes one for each command.
    detached: hears !== undefined,
  })
  let out = ''
  let err = ''
  child.stdout.on('data', (chunk: Buffer) => (out += String(chunk)))
  child.stderr.on('data', (chunk: Buffer) => {
    err += String(chunk)
    hears?.(err, child)
  })
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, out, err }
}

export function runHuntProcess(
  args: readonly string[],
  environment: NodeJS.ProcessEnv,
  hears?: (err: string, child: ChildProcess) => void,
  cwd?: string,
): Promise<Ended> {
  return runNode([main, 'hunt', ...args], environment, {
    ...(hears && { hears }),
    ...(cwd !== undefined && { cwd }),
  })
}
