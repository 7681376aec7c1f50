const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })

/** East Asian wide and fullwidth characters, and emoji, take two columns. */
const wide =
  /^(?:\p{Emoji_Presentation}|.\uFE0F|[\u1100-\u115F\u2E80-\u303E\u3041-\uA4CF\uA960-\uA97F\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6\u{1F000}-\u{1FAFF}\u{20000}-\u{3FFFD}])/u
const ascii = /^[\u0020-\u007E]*$/

/** How many columns a text takes. It has no control characters. */
export function textWidth(text: string): number {
  if (ascii.test(text)) return text.length
  let width = 0
  for (const { segment } of graphemes.segment(text)) width += wide.test(segment) ? 2 : 1
  return width
}

/** The text, or as much of it as fits, with an ellipsis. */
export function cutText(text: string, width: number): string {
  if (textWidth(text) <= width) return text
  if (width < 1) return ''
  let room = width - 1
  let kept = ''
  for (const { segment } of graphemes.segment(text)) {
    room -= wide.test(segment) ? 2 : 1
    if (room < 0) break
    kept += segment
  }
  return `${kept}…`
}

export function padText(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - textWidth(text)))
}

/** Words in lines of at most `width` columns; a word that is longer has a line of its own. */
export function wrapText(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && textWidth(line) + 1 + textWidth(word) > width) {
      lines.push(line)
      line = word
    } else {
      line = line === '' ? word : `${line} ${word}`
    }
  }
  return [...lines, line]
}
