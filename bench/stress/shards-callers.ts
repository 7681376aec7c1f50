import { setTimeout as after } from 'node:timers/promises'

/** Until it goes well: a primary may be gone for a while. */
export async function insistOn<T>(act: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await act()
    } catch {
      await after(20)
    }
  }
}

export function any<T>(items: readonly T[]): T {
  return items[Math.floor(Math.random() * items.length)] as T
}
