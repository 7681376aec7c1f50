/** HTML and SVG that cannot be broken out of: whatever is filled in is escaped, unless it is markup. */

/** Text that is markup already. Only `html` and `trusted` make it. */
export class Markup {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Fill = string | number | Markup | undefined | readonly (Markup | string)[]

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Line breaks and tabs may stay; other control characters, and those that turn text around, not. */
// oxlint-disable-next-line no-control-regex -- that is what it is about
const unsafe = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

function escape(text: string): string {
  return text
    .replaceAll(unsafe, '\u00b7')
    .replaceAll(/[&<>"']/g, (character) => entities[character] as string)
}

/** A template whose values are escaped. Undefined is nothing; a list is joined. */
export function html(parts: TemplateStringsArray, ...fills: readonly Fill[]): Markup {
  const text = parts.reduce((before, part, at) => `${before}${filled(fills[at - 1])}${part}`)
  return new Markup(text)
}

/** Text of our own that holds no data: styles and scripts. */
export function trusted(text: string): Markup {
  return new Markup(text)
}

function filled(fill: Fill): string {
  if (fill === undefined) return ''
  if (fill instanceof Markup) return fill.text
  if (typeof fill === 'object') return fill.map((one) => filled(one)).join('')
  return escape(String(fill))
}
