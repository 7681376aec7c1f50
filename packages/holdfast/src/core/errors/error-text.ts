/** How an error is written where its text cannot be read. */
const unreadable = 'an error that has no text'

/**
 * What a text column can hold of an error. Never throws, whatever was thrown: whoever writes down how something failed
 * must not fail himself.
 */
export function errorText(
  error: unknown,
  most: number,
  { named = false }: { readonly named?: boolean } = {},
): string {
  return said(error, named).slice(0, most).replaceAll('\0', '').toWellFormed()
}

function said(error: unknown, named: boolean): string {
  try {
    if (!(error instanceof Error)) return String(error)
    const { name, message } = error as { readonly name: unknown; readonly message: unknown }
    if (typeof message !== 'string') return String(name)
    return named ? `${String(name)}: ${message}` : message
  } catch {
    return unreadable
  }
}
