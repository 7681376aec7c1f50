import type { Fragment } from './text.ts'

/**
 * By what everybody sorts keys: any order will do that is the same for all who mean the same rows. Most collations pass
 * over case, accents and spaces at the end; where one makes two of still more, a deadlock is possible, and told.
 */
export function inLockOrder(a: Fragment, b: Fragment): number {
  const [first, second] = [turnOf(a), turnOf(b)]
  return first < second ? -1 : first > second ? 1 : 0
}

function turnOf({ values }: Fragment): string {
  return JSON.stringify(values.map((value) => foldedText(String(value))))
}

/** A text as most collations see it. */
export function foldedText(text: string): string {
  const bare = text.normalize('NFD').replaceAll(/\p{M}/gu, '')
  return bare.toLowerCase().trimEnd()
}
