/** What a process does that is told to end while the rows of a database are not its own. */

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Calls `putBack` at the first signal, says in one line what became of it, and ends the process as the signal would
 * have. Where the program listens for the signal itself, that is its own business; `stopped` is called then.
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
    if (process.listenerCount(signal) === 0) process.kill(process.pid, signal)
    else stopped(signal)
  }

  const listener = (signal: NodeJS.Signals): void => void hear(signal)
  function forget(): void {
    for (const signal of signals) process.off(signal, listener)
  }

  for (const signal of signals) process.on(signal, listener)
  return { [Symbol.dispose]: forget }
}

function say(text: string): void {
  process.stderr.write(`holdfast-race: ${text}\n`)
}
