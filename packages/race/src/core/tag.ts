/** Names of ours in a tree of values, for what JSON has no word for: `{ '‹Date›': … }`. No program returns such names. */

export function tagged(name: string, value: unknown): Record<string, unknown> {
  return { [`‹${name}›`]: value }
}

export function isTag(name: string): boolean {
  return /^‹.*›$/s.test(name)
}
