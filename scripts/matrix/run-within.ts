import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'

export interface Ran {
  /** What it wrote to stderr. */
  readonly said: string
  /** False if it was killed, with all that it had started, because the time was over. */
  readonly ended: boolean
}

/**
 * Runs a program of Node's in a process group of its own, for at most so long. Servers that it has started have guardians
 * in other groups, which stop them.
 */
export async function runWithin(
  limitMs: number,
  args: readonly string[],
  options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): Promise<Ran> {
  const program = spawn(process.execPath, args, {
    ...options,
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const kill = (): void => {
    // Of a program that could not be started there is nothing to kill.
    if (program.pid === undefined) return
    try {
      process.kill(-program.pid, 'SIGKILL')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
  // Ctrl-C reaches only our own group.
  const stop = (signal: NodeJS.Signals): void => {
    kill()
    process.kill(process.pid, signal)
  }
  let ended = true
  const limit = setTimeout(() => {
    ended = false
    kill()
  }, limitMs)
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
  try {
    const said = await text(program.stderr)
    return { said, ended }
  } finally {
    clearTimeout(limit)
    process.off('SIGINT', stop)
    process.off('SIGTERM', stop)
  }
}
