/** Text that comes from data, made fit for a terminal. */

/** Control characters and those that turn the direction of writing could rewrite the screen. */
// oxlint-disable-next-line no-control-regex -- that is what it is about
const unsafe = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

export function harmless(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll(unsafe, '\u00b7')
}

/** Words on lines of at most `width`; a word that is longer is broken. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    let rest = word
    if (line !== '' && line.length + 1 + rest.length <= width) {
      line += ` ${rest}`
      continue
    }
    if (line !== '') lines.push(line)
    while (rest.length > width) {
      lines.push(rest.slice(0, width))
      rest = rest.slice(width)
    }
    line = rest
  }
  if (line !== '') lines.push(line)
  return lines
}
