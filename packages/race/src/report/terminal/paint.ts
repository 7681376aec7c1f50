/** Colours, where there is somebody to see them. */

export type Style =
  | 'bold'
  | 'dim'
  | 'red'
  | 'green'
  | 'yellow'
  | 'blue'
  | 'magenta'
  | 'cyan'
  | 'inverse'

const codes: Readonly<Record<Style, readonly [number, number]>> = {
  bold: [1, 22],
  dim: [2, 22],
  inverse: [7, 27],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  blue: [34, 39],
  magenta: [35, 39],
  cyan: [36, 39],
}

export type Paint = (text: string, ...styles: readonly Style[]) => string

export function painter(colour: boolean): Paint {
  if (!colour) return (text) => text
  return (text, ...styles) =>
    text === ''
      ? ''
      : styles.reduce(
          (inner, style) => `\u001b[${codes[style][0]}m${inner}\u001b[${codes[style][1]}m`,
          text,
        )
}

/** A colour per flow, never red, which is kept for what went wrong. */
export function flowStyle(flow: number): Style {
  const styles: readonly Style[] = ['cyan', 'magenta', 'blue', 'yellow', 'green']
  return styles[flow % styles.length] as Style
}

/** What a stream is able to show. */
export interface Screen {
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
}

/** `FORCE_COLOR` wins, then `NO_COLOR` (if not empty), then whether it is a terminal. */
export function wantsColour(
  screen: Screen,
  environment: Readonly<Record<string, string | undefined>>,
): boolean {
  const force = environment['FORCE_COLOR']
  if (force !== undefined) return force !== '0' && force !== 'false'
  if ((environment['NO_COLOR'] ?? '') !== '') return false
  return screen.isTTY === true && environment['TERM'] !== 'dumb'
}
