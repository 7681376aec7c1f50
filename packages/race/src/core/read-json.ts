/** The value of a JSON text; undefined for a text that is none. JSON itself has no undefined. */
export function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
