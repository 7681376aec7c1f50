import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/** SHA-256 of a token. Tokens are long and random, so that a slow hash would protect nothing. */
export function hashOf(token: string): Buffer {
  return createHash('sha256').update(token, 'utf8').digest()
}

/**
 * Whether two secrets are the same, in a time that tells nothing about them: hashes are compared, so that
 * neither where they differ nor how long they are can be measured.
 */
export function sameSecret(one: string | Buffer, other: string | Buffer): boolean {
  const [a, b] = [one, other].map((secret) =>
    typeof secret === 'string' ? hashOf(secret) : secret,
  )
  return a !== undefined && b !== undefined && a.length === b.length && timingSafeEqual(a, b)
}

/** A text that only the owner of the key can make. */
export function signature(key: Buffer, purpose: string, text: string): string {
  return createHmac('sha256', key).update(`${purpose}\n${text}`, 'utf8').digest('base64url')
}

/** A key for signatures. */
export function randomKey(): Buffer {
  return randomBytes(32)
}
