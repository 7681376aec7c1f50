/**
 * What must not reach a terminal as it is: control characters, which move the cursor and worse, and marks
 * that turn the direction of text, hide it or break the line. Names and queries are written by others.
 */
const unsafe =
  // oxlint-disable-next-line no-control-regex -- that is what it is for
  /[\u0000-\u001F\u007F-\u009F\u00AD\u061C\u180E\u200B-\u200F\u2028-\u202E\u2060-\u206F\uFEFF\uFFF9-\uFFFB\u{E0000}-\u{E0FFF}]|\p{Surrogate}/gu

/** One line that shows everything that is in the text: what is unsafe as `\x1b` or `\u202e`. */
export function cleanText(text: string): string {
  return text.replaceAll(/[\t\r\n\f\v]+ */g, ' ').replaceAll(unsafe, escaped)
}

/** The same for a text of ours with what others wrote in it: lines stay lines. */
export function cleanLines(text: string): string {
  return text.replaceAll(unsafe, (char) => (char === '\n' || char === '\t' ? char : escaped(char)))
}

/** JSON that means the same and is safe to look at. */
export function cleanJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(unsafe, (char) =>
    [...Array(char.length).keys()].map((at) => unicodeEscape(char.charCodeAt(at))).join(''),
  )
}

function escaped(char: string): string {
  const code = char.codePointAt(0) as number
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, '0')}`
  return code > 0xffff ? `\\u{${code.toString(16)}}` : unicodeEscape(code)
}

function unicodeEscape(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, '0')}`
}
