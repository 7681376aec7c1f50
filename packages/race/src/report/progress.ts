import type { Progress } from '../core/model.ts'
import { seconds } from './coverage-words.ts'
import { times } from './words.ts'

/** Where progress is written: a stream like `process.stderr`. */
export interface ProgressStream {
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
  write(text: string): unknown
}

/** Tells how far a search is. */
export interface ProgressLine extends Disposable {
  /** To be called after every run, as often as there are runs. */
  update(progress: Progress): void
  /** Takes the line away, so that what comes next stands alone; disposing does the same. */
  end(): void
}

/** A search that is over sooner is not talked about. */
const silentMs = 1000
const terminalEveryMs = 100
const otherEveryMs = 5000

const phases: Readonly<Record<Progress['phase'], string>> = {
  learn: 'one after the other, again',
  serial: 'one after the other',
  search: 'searching',
  random: 'random orders',
  shrink: 'found one, making it shorter',
  replay: 'found one, trying it again',
}

/** One line that is rewritten on a terminal; elsewhere a line every few seconds. */
export function progressLine(name: string, stream: ProgressStream = process.stderr): ProgressLine {
  const terminal = stream.isTTY === true
  const everyMs = terminal ? terminalEveryMs : otherEveryMs
  let toldAt = terminal ? silentMs - terminalEveryMs : 0
  let shown = false
  const end = (): void => {
    if (shown && terminal) stream.write('\r\u001b[K')
    shown = false
  }
  return {
    update(progress) {
      if (progress.milliseconds - toldAt < everyMs) return
      toldAt = progress.milliseconds
      const text = formatProgress(name, progress)
      shown = true
      // Erase to the end of the line, since the last one may have been longer.
      stream.write(
        terminal ? `\r${text.slice(0, (stream.columns ?? 80) - 1)}\u001b[K` : `${text}\n`,
      )
    },
    end,
    [Symbol.dispose]: end,
  }
}

/** `upload: searching, 128 runs, 41 classes, 12 open, at most 2 preemptions, 3.1 s (16 % of the budget)` */
function formatProgress(name: string, progress: Progress): string {
  const { phase, schedules, classes, open, bound, budget, milliseconds } = progress
  const spent = Math.max(schedules / budget.schedules, milliseconds / budget.ms)
  return [
    `${name.replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ')}: ${phases[phase]}`,
    times(schedules, 'run'),
    times(classes, 'class', 'classes'),
    ...(open > 0 ? [`${open.toLocaleString('en-US')} open`] : []),
    ...(bound === undefined ? [] : [`at most ${times(bound, 'preemption')}`]),
    `${seconds(milliseconds)} (${Math.min(100, Math.round(spent * 100))} % of the budget)`,
  ].join(', ')
}
