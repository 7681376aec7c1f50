import { lstatSync, statSync } from 'node:fs'

/**
 * Whether a file is there and belongs to whoever runs this, or to root; if it is a link, the link too. Anybody else could
 * have put it there for us to run.
 */
export function isOwn(file: string): boolean {
  // Windows has no such owners.
  const us = process.geteuid?.()
  try {
    return [lstatSync(file), statSync(file)].every(
      ({ uid }) => us === undefined || uid === us || uid === 0,
    )
  } catch {
    return false
  }
}
