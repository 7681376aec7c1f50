import type { Paint } from '../terminal/paint.ts'

/** How wide, and in which colours. */
export interface Look {
  readonly width: number
  readonly paint: Paint
}

/** As the terminal is right now: somebody may make it wider while a command runs. */
export function lookOf(terminal: {
  readonly paint: Paint
  size(): { readonly columns: number }
}): Look {
  return { width: terminal.size().columns, paint: terminal.paint }
}
