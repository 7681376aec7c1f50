/**
 * Whether PostgreSQL can store a text exactly as it is. NUL is no character of its. Half a character would become a
 * substitute, so that two texts were one.
 */
export function isStorable(text: unknown): text is string {
  return typeof text === 'string' && !text.includes('\0') && text.isWellFormed()
}

/** Of a key, scope or name: together with others it has to fit into an index. */
export const mostNameBytes = 512

export function isName(text: unknown, mostBytes: number = mostNameBytes): text is string {
  return isStorable(text) && text !== '' && Buffer.byteLength(text) <= mostBytes
}

/** What JSON writes for NUL and for half a character: jsonb takes neither. */
const unstorable = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/

export function isStorableJson(json: string): boolean {
  return !unstorable.test(json)
}
