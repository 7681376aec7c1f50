import { hash } from 'node:crypto'

/** What the column takes is 128; the hash is the last 65 of them. */
const mostShown = 63

/**
 * How the row of something is called: the last of its names as people call it, so that the server's own lock views show
 * it, and the hash of all of them, which alone makes it this one. Collations pass over case and blanks at the end, and
 * indexes end sooner than names.
 */
export function rowName(...names: readonly string[]): string {
  const shown = (names.at(-1) ?? '').replaceAll(/[^\w:.@-]/g, '_').slice(0, mostShown)
  return `${shown}#${hash('sha256', JSON.stringify(names))}`
}
