/** A step of a suite that is no request, named where it is called; without a recording it is a plain call. */
import { channel } from 'node:diagnostics_channel'

/** A call that was named. Whoever records puts `result` in it. */
export interface NamedCall {
  readonly name: string
  readonly run: (...values: unknown[]) => Promise<unknown>
  readonly values: readonly unknown[]
  result?: Promise<unknown>
}

/** A core module, because test runners load modules of ours once more for each file. */
export const namedCalls: ReturnType<typeof channel> = channel('holdfast.race.call')

/**
 * One step of a suite that is no request: a job, or a function. While `hunt()` or `hunt -- <command>` records, it is written
 * down under this name; otherwise it is `run(...values)` and nothing else. For the command, the file that `--app` names has the
 * function of the same name in `calls`.
 *
 * @example await call('expire holds', expireHolds, 7)
 */
export function call<V extends readonly unknown[], T>(
  name: string,
  run: (...values: V) => Promise<T>,
  ...values: V
): Promise<T> {
  const named = { name, run, values } as unknown as NamedCall
  namedCalls.publish(named)
  return (named.result as Promise<T> | undefined) ?? run(...values)
}
