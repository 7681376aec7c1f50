import { lockKey } from './lock-key.ts'

/** A key that a text may stand for. */
export interface CalledKey {
  readonly id: bigint
  readonly name: string
  readonly namespace: string
}

/** Longer names are left alone: each colon doubles the ways to read a name. */
const mostColons = 8

/**
 * All keys that have this name: a colon may separate two parts, or be in one of them. Which of them it is, its number says.
 */
export function* keysCalled(name: string): Generator<CalledKey> {
  const pieces = name.split(':')
  const colons = pieces.length - 1
  if (colons < 1 || colons > mostColons) return
  // Each bit says whether a colon separates, rather than being part of a part.
  for (let bits = 1; bits < 2 ** colons; bits += 1) {
    const parts = ['']
    pieces.forEach((piece, at) => {
      if (at === 0) parts[0] = piece
      else if ((bits & (1 << (at - 1))) !== 0) parts.push(piece)
      else parts[parts.length - 1] += `:${piece}`
    })
    if (parts.includes('')) continue
    const [namespace = '', ...rest] = parts
    const { lock } = lockKey(namespace, ...rest)
    yield { id: lock.id, name, namespace }
  }
}
