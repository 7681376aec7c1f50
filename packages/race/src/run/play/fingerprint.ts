import { createHash } from 'node:crypto'
import { readStatements } from '../../core/sql-tokens.ts'

const hashes = new Map<string, string>()

/** What a unit is, without values that may differ from run to run and without whose it is. */
export function fingerprint(
  statements: readonly string[],
  half: string,
  lane: number,
  place: number,
): string {
  const text = statements.join(';')
  let hash = hashes.get(text)
  if (hash === undefined) {
    const shape = readStatements(text).map(({ tokens }) =>
      tokens.map(({ kind, text: token }) => (kind === 'string' || kind === 'number' ? '?' : token)),
    )
    hash = createHash('sha256').update(JSON.stringify(shape)).digest('base64url').slice(0, 10)
    if (hashes.size > 2000) hashes.clear()
    hashes.set(text, hash)
  }
  return `${lane}.${place}.${half}.${hash}`
}
