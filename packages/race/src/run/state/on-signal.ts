/** What a process does that is told to end while the rows of a database are not its own. */
import { syncBuiltinESMExports } from 'node:module'

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Calls `putBack` at the first signal, says in one line what became of it, and ends the process as the signal would
 * have. Where the program listens for the signal itself, that is its own business; `stopped` is called then. If it calls
 * `process.exit` there, the process ends when the rows are back.
 */
export function onSignal(
  putBack: (signal: string) => Promise<void>,
  stopped: (signal: string) => void,
): Disposable {
  let begun = false

  async function hear(signal: NodeJS.Signals): Promise<void> {
    // A terminal and npm may both send it; the first one counts.
    if (begun) return
    begun = true
    const letExit = holdExit()
    try {
      await putBack(signal)
      say(`${signal}. The exploration was stopped; rows and sequences are as they were before it.`)
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      say(
        `${signal}. Rows and sequences could not be put back: ${message}. The next exploration with state: 'restore' says what to do.`,
      )
    }
    forget()
    letExit()
    if (process.listenerCount(signal) === 0) process.kill(process.pid, signal)
    else stopped(signal)
  }

  const listener = (signal: NodeJS.Signals): void => void hear(signal)
  function forget(): void {
    for (const signal of signals) process.off(signal, listener)
  }

  // Before those of the program, one of which may end the process at once.
  for (const signal of signals) process.prependListener(signal, listener)
  return { [Symbol.dispose]: forget }
}

/** Until what is returned is called, nobody ends the process by `process.exit`; then whoever wanted to does. */
function holdExit(): () => void {
  const { exit } = process
  let wanted: { readonly code: Parameters<typeof exit>[0] } | undefined
  const setExit = (next: typeof exit): void => {
    process.exit = next
    // For those who import it by name.
    syncBuiltinESMExports()
  }
  setExit(((code) => {
    wanted ??= { code }
  }) as typeof exit)
  return () => {
    setExit(exit)
    if (wanted) process.exit(wanted.code)
  }
}

/** What our words on stderr begin with. */
export const ours = 'holdfast-race: '

function say(text: string): void {
  process.stderr.write(`${ours}${text}\n`)
}
