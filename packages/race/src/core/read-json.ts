/** What is nested deeper is compared as the text that it is. */
const deepest = 200

/** The value of a JSON text; undefined for a text that is none, or too deep. JSON itself has no undefined. */
export function readJson(text: string): unknown {
  try {
    return depthOf(text) > deepest ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

/** How deep brackets are nested, those in strings left out. */
function depthOf(text: string): number {
  let [depth, most, quoted] = [0, 0, false]
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at]
    if (sign === '"') quoted = !quoted
    else if (quoted) at += sign === '\\' ? 1 : 0
    else if (sign === '[' || sign === '{') most = Math.max(most, ++depth)
    else if (sign === ']' || sign === '}') depth -= 1
  }
  return most
}
