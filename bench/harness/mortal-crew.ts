import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'

/** Processes of one program, of which some are killed and replaced. */
export interface MortalCrew extends AsyncDisposable {
  readonly killed: number
  /** Throws if one of them has ended by itself: what it was to do is not done. */
  check(): void
  /** Kills one of them at once, by SIGKILL, and starts another in its place. */
  killOne(which: number): Promise<void>
}

/** Starts `size` processes that are given `setup` and their number; each ends when its channel closes. */
export async function startMortalCrew(
  program: URL,
  size: number,
  setup: object,
): Promise<MortalCrew> {
  let killed = 0
  let failed: string | undefined
  const start = (index: number): ChildProcess => {
    const child = fork(program, { stdio: 'inherit' })
    child.send({ ...setup, index })
    child.once('exit', (code) => {
      if (code !== null && code !== 0) failed = `process ${index} ended with ${code}`
    })
    return child
  }
  const crew = Array.from({ length: size }, (_, index) => start(index))
  return {
    check() {
      if (failed !== undefined) throw new Error(failed)
    },
    get killed() {
      return killed
    },
    async killOne(which) {
      const child = crew[which % size] as ChildProcess
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
      killed += 1
      crew[which % size] = start(which % size)
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(
        crew.map(async (child) => {
          if (child.exitCode !== null || child.signalCode !== null) return
          const ended = once(child, 'exit')
          child.kill('SIGKILL')
          await ended
        }),
      )
    },
  }
}
