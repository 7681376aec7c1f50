import type { DriverCapabilities } from '../../core/driver.ts'

/** The pool of a client that shows how many connections it may open, as pg's and postgres.js do. */
export function poolOf(client: unknown): DriverCapabilities['pool'] {
  if ((typeof client !== 'object' && typeof client !== 'function') || client === null)
    return undefined
  const { options } = client as { readonly options?: { readonly max?: unknown } }
  const size = options?.max
  return typeof size === 'number' && size >= 1 ? { of: client, size } : undefined
}
