import { createStore } from './external-store.ts'

export type Theme = 'system' | 'light' | 'dark'

const key = 'holdfast-console-theme'

/** As the system has it, unless the reader chose otherwise; remembered on this device. */
export const theme: ReturnType<typeof createStore<Theme>> = createStore<Theme>(remembered())

theme.subscribe(apply)
apply()

function remembered(): Theme {
  try {
    const value = localStorage.getItem(key)
    return value === 'light' || value === 'dark' ? value : 'system'
  } catch {
    // Storage may be forbidden; then a choice lasts as long as the page.
    return 'system'
  }
}

function apply(): void {
  const chosen = theme.get()
  if (chosen === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = chosen
}

/** The next choice in the round, kept for next time. */
export function turnTheme(): void {
  const order: readonly Theme[] = ['system', 'light', 'dark']
  const next = order[(order.indexOf(theme.get()) + 1) % order.length] ?? 'system'
  theme.set(next)
  try {
    if (next === 'system') localStorage.removeItem(key)
    else localStorage.setItem(key, next)
  } catch {
    // See above.
  }
}
