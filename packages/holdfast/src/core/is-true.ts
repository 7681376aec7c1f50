/**
 * Reads a truth that a statement of ours has answered as text. All that we read comes as text: what a client makes of
 * other types its user can change, and `=== true` on a parser's answer would then be a no.
 */
export function isTrue(answer: unknown): boolean {
  return answer === 'true'
}
