import { useEffect, useState } from 'preact/hooks'
import { ApiFailure, ask, type Parameters } from './api.ts'
import { noteRefusal } from './info.ts'

/** Data of the server, as last heard. */
export interface Resource<T> {
  readonly data?: T
  /** Why the latest try gave nothing; `data` is then older. */
  readonly failure?: ApiFailure
  /** When `data` was heard. */
  readonly at?: number
  readonly reload: () => void
}

/**
 * Asks for something, and again every so often while the page can be seen. With another path or other
 * parameters it starts from nothing, so that nobody reads old data under a new heading.
 */
export function useResource<T>(
  path: string | undefined,
  parameters: Parameters,
  everyMs?: number,
): Resource<T> {
  const key = path === undefined ? undefined : `${path}?${JSON.stringify(parameters)}`
  const [state, setState] = useState<Omit<Resource<T>, 'reload'> & { readonly key?: string }>({})
  const [round, setRound] = useState(0)

  useEffect(() => {
    if (path === undefined || key === undefined) return undefined
    const ended = new AbortController()
    let timer: number | undefined

    const load = async (): Promise<void> => {
      clearTimeout(timer)
      try {
        const data = await ask<T>(path, parameters, ended.signal)
        setState({ key, data, at: Date.now() })
      } catch (error) {
        if (ended.signal.aborted) return
        if (!(error instanceof ApiFailure)) throw error
        noteRefusal(error)
        setState((before) => ({ ...(before.key === key ? before : {}), key, failure: error }))
      }
      if (everyMs !== undefined && !ended.signal.aborted && !document.hidden) {
        timer = window.setTimeout(() => void load(), everyMs)
      }
    }
    const seen = (): void => {
      if (everyMs !== undefined && !document.hidden) void load()
    }
    document.addEventListener('visibilitychange', seen)
    void load()
    return () => {
      ended.abort()
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', seen)
    }
  }, [key, everyMs, round])

  const reload = (): void => setRound((value) => value + 1)
  return state.key === key ? { ...state, reload } : { reload }
}
