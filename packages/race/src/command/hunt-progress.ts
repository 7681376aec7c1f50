import type { HuntProgress } from '../hunt/model.ts'
import type { ProgressStream } from '../report/progress.ts'
import { times } from '../report/words.ts'

/** Away from a terminal one line for each phase, and for so many milliseconds, is enough. */
const everyMs = 5_000

/** Says how far a hunt is: one line that is rewritten on a terminal, elsewhere a line now and then. */
export function huntProgress(stream: ProgressStream): {
  tell(progress: HuntProgress): void
  end(): void
} {
  const terminal = stream.isTTY === true
  let toldAt = 0
  let last: HuntProgress['phase'] | undefined
  return {
    tell(progress) {
      const now = performance.now()
      if (!terminal && progress.phase === last && now - toldAt < everyMs) return
      toldAt = now
      last = progress.phase
      const text = `hunt: ${textOf(progress)}`
      stream.write(
        terminal ? `\r${text.slice(0, (stream.columns ?? 80) - 1)}\u001b[K` : `${text}\n`,
      )
    },
    end() {
      if (terminal) stream.write('\r\u001b[K')
    },
  }
}

function textOf({ phase, done, of, proven }: HuntProgress): string {
  if (phase === 'record') return `${times(done, 'call')} recorded`
  if (phase === 'look') return `looking at call ${done + 1} of ${of}`
  return `pair ${Math.min(done + 1, of)} of ${of}, ${proven} proven`
}
