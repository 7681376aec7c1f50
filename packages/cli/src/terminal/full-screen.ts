import { emitKeypressEvents } from 'node:readline'
import type { ReadStream, WriteStream } from 'node:tty'
import type { Key, Screen } from './terminal.ts'

/** The alternate screen, without wrapping of lines, and the cursor hidden; what was on the other one stays there. */
const enter = '\u001B[?1049h\u001B[?25l\u001B[?7l'
const leave = '\u001B[?7h\u001B[?25h\u001B[?1049l'
const home = '\u001B[H'
const clearLine = '\u001B[K'
const clearBelow = '\u001B[J'
/** Terminals that know it show the frame at once. */
const begin = '\u001B[?2026h'
const end = '\u001B[?2026l'

/** Takes the terminal over. It is given back by `close`, and by the end of the process, whatever ends it. */
export function openScreen(
  input: ReadStream,
  output: WriteStream,
  onKey: (key: Key) => void,
  onResize: () => void,
): Screen {
  let drawn = ''
  let open = true
  const keypress = (
    _: unknown,
    key: { readonly name?: string; readonly ctrl?: boolean; readonly sequence?: string },
  ): void => onKey({ name: key.name ?? key.sequence ?? '', ctrl: key.ctrl === true })
  const resize = (): void => {
    drawn = ''
    onResize()
  }
  const close = (): void => {
    if (!open) return
    open = false
    process.off('exit', close)
    input.off('keypress', keypress)
    output.off('resize', resize)
    input.setRawMode(false)
    input.pause()
    output.write(leave)
  }
  process.once('exit', close)
  emitKeypressEvents(input)
  input.setRawMode(true)
  input.on('keypress', keypress)
  input.resume()
  output.on('resize', resize)
  output.write(enter)
  return {
    close,
    draw(lines) {
      if (!open) return
      const frame = `${home}${lines.join(`${clearLine}\r\n`)}${clearLine}${clearBelow}`
      if (frame === drawn) return
      drawn = frame
      output.write(`${begin}${frame}${end}`)
    },
  }
}
