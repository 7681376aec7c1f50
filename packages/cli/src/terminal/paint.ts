import { styleText } from 'node:util'

type Style = Exclude<Parameters<typeof styleText>[0], readonly unknown[]>

/** Colours a text, or leaves it as it is where colours are not wanted. */
export type Paint = (style: Style | readonly Style[], text: string) => string

export const plain: Paint = (_, text) => text

export const coloured: Paint = (style, text) =>
  text === '' ? '' : styleText(style as Style, text, { validateStream: false })

/** Colours are for people: not in a file or a pipe, and not for those who said so (no-color.org). */
export function paintFor(
  isTerminal: boolean,
  environment: Readonly<Record<string, string | undefined>>,
): Paint {
  const refused = (environment['NO_COLOR'] ?? '') !== '' || environment['TERM'] === 'dumb'
  return isTerminal && !refused ? coloured : plain
}
