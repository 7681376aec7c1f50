import { fork } from 'node:child_process'
import { once } from 'node:events'

/** A program whose library lacks a protection. */
export interface Weakened {
  /** What answers one order with one report. */
  readonly program: URL
  /** Cuts the protection out of the source as it is loaded; see `cut-sources.ts`. */
  readonly cutting: URL
  /** Names the protection to `cutting`. */
  readonly env: Readonly<Record<string, string>>
}

/** Gives an order to such a program in a process of its own, and waits for its report. */
export async function askWeakened<R>(
  { program, cutting, env }: Weakened,
  order: object,
): Promise<R> {
  const child = fork(program, {
    execArgv: ['--import', cutting.href],
    env: { ...process.env, ...env },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const ended = once(child, 'exit')
  child.send(order)
  const told = await Promise.race([
    once(child, 'message').then(([report]) => ({ report: report as R })),
    ended.then(
      ([code]) => new Error(`${Object.values(env).join()}: its process ended with ${code}`),
    ),
  ])
  if (told instanceof Error) throw told
  await ended
  return told.report
}
