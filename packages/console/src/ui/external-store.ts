import { useEffect, useState } from 'preact/hooks'

/** Renders again whenever what `read` gives is another value. */
export function useSyncExternalStore<T>(
  subscribe: (listener: () => void) => () => void,
  read: () => T,
): T {
  const [value, setValue] = useState(read)
  useEffect(() => {
    const update = (): void => setValue(() => read())
    // It may have changed between the rendering and now.
    update()
    return subscribe(update)
    // Both are constant for the life of a component that uses this.
  }, [])
  return value
}

/** A value that many look at. */
export interface Store<T> {
  get(): T
  set(value: T): void
  subscribe(listener: () => void): () => void
}

/** Makes a store that holds `value` at first. */
export function createStore<T>(value: T): Store<T> {
  const listeners = new Set<() => void>()
  let current = value
  return {
    get: () => current,
    set(next) {
      if (Object.is(next, current)) return
      current = next
      for (const listener of listeners) listener()
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

/** What a store holds; renders again when that changes. */
export function useStore<T>(store: Store<T>): T {
  return useSyncExternalStore(store.subscribe, store.get)
}
