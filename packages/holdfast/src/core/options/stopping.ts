import { type Duration, durationMs, timerMs } from './duration.ts'
import { type KnownOptions, optionsGiven } from './known-options.ts'

/** How long work that is under way is waited for when something is stopped. */
export interface StopOptions {
  /** How long it may go on; then its signal is aborted. @defaultValue '30 s' */
  readonly within?: Duration
  /** How long it is waited for after that, if it does not heed its signal. @defaultValue '5 s' */
  readonly leaveAfter?: Duration
}

export const stopOptions: KnownOptions<StopOptions> = {
  within: 'checked',
  leaveAfter: 'checked',
}

/**
 * Checks options of `close` and `stop` before there is anything to stop; `within` is the option that they are in.
 *
 * @throws OPTION_INVALID
 */
export function assertStopOptions(options: StopOptions | undefined, within = ''): void {
  const known = optionsGiven(options, stopOptions, within)
  for (const name of ['within', 'leaveAfter'] as const) {
    const { [name]: time = '1 s' } = known
    durationMs(time, within === '' ? name : `${within}.${name}`)
  }
}

/** What became of work that was under way. */
export interface Stopped {
  /** How many did not end in time. They were left behind, and go on for as long as the process does. */
  readonly left: number
}

/**
 * Waits for work that is under way: first in peace, then `abort` is called, in the end it is left.
 * True if it ended by itself.
 */
export async function endedInTime(
  ended: Promise<unknown>,
  options: StopOptions | undefined,
  abort: () => void,
): Promise<boolean> {
  const { within = '30 s', leaveAfter = '5 s' } = optionsGiven(options, stopOptions)
  const withinMs = durationMs(within, 'within')
  const leaveMs = durationMs(leaveAfter, 'leaveAfter')
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => {
      abort()
      timer = setTimeout(() => resolve(false), timerMs(leaveMs))
    }, timerMs(withinMs))
  })
  try {
    return await Promise.race([ended.then(() => true as const), late])
  } finally {
    clearTimeout(timer)
  }
}
