import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterEach, expect } from 'vitest'
import type { SqlitePlace } from './each-sqlite.ts'

const program = fileURLToPath(new URL('contender.ts', import.meta.url))

/** Processes that work on the file of a test. */
export interface Crew {
  /** One that is ready, and begins when it is sent something. */
  start(what: string, argument?: string): Promise<ChildProcess>
  /** As many begin when all are there; what each has told in the end. */
  race(what: string, processes: number, argument?: string): Promise<readonly string[][]>
  /** The same for jobs that say when they have looked: all have, before any of them writes. */
  collide(what: string, processes: number, argument?: string): Promise<readonly string[][]>
  /** Ends one as an outage would. */
  kill(child: ChildProcess): Promise<void>
}

/** Registers the clean-up; call it where tests are declared. */
export function crewOf(place: SqlitePlace): Crew {
  let children: ChildProcess[] = []
  afterEach(() => {
    for (const child of children) child.kill('SIGKILL')
    children = []
  })
  const crew: Crew = {
    async start(what, argument = '') {
      const child = fork(program, [place.client, place.file(), what, argument])
      children.push(child)
      expect(await told(child)).toBe('ready')
      return child
    },
    async race(what, processes, argument) {
      const started = await Promise.all(
        Array.from({ length: processes }, () => crew.start(what, argument)),
      )
      const ends = started.map(async (child) => (await told(child)) as string[])
      for (const child of started) child.send('go')
      return await Promise.all(ends)
    },
    async collide(what, processes, argument) {
      const started = await Promise.all(
        Array.from({ length: processes }, () => crew.start(what, argument)),
      )
      for (const step of ['look', 'write']) {
        const ends = started.map(async (child) => await told(child))
        for (const child of started) child.send(step)
        const all = await Promise.all(ends)
        if (step === 'write') return all as string[][]
        expect(all).toEqual(all.map(() => 'looked'))
      }
      return []
    },
    async kill(child) {
      const dead = once(child, 'exit')
      child.kill('SIGKILL')
      await dead
    },
  }
  return crew
}

/** What a process says next. Fails if it ends instead. */
export async function told(child: ChildProcess): Promise<unknown> {
  const gone = new AbortController()
  const exit = (code: number | null): void =>
    gone.abort(new Error(`the process ended with ${String(code)}`))
  child.once('exit', exit)
  try {
    const [message] = (await once(child, 'message', { signal: gone.signal })) as [unknown]
    return message
  } catch (error) {
    throw gone.signal.reason ?? error
  } finally {
    child.off('exit', exit)
  }
}
