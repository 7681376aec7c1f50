/** One clock for all lengths that grow on the page, so that they turn over together. */
import { useEffect, useState } from 'preact/hooks'

const listeners = new Set<() => void>()
let timer: number | undefined

function run(): void {
  for (const listener of listeners) listener()
}

/** Renders again each second; `frozen` stands still. */
export function useNow(frozen = false): number {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    if (frozen) return undefined
    const update = (): void => setNow(Date.now())
    listeners.add(update)
    timer ??= window.setInterval(run, 1000)
    return () => {
      listeners.delete(update)
      if (listeners.size > 0) return
      clearInterval(timer)
      timer = undefined
    }
  }, [frozen])
  return now
}
