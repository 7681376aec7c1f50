import type { Paint } from './paint.ts'

/** A key that was pressed, by the name that node:readline gives it. */
export interface Key {
  readonly name: string
  readonly ctrl: boolean
}

/** How wide and high, right now. */
export interface Size {
  readonly columns: number
  readonly rows: number
}

/** What a command may know about where it prints. */
export interface Terminal {
  /** A person looks at the result. */
  readonly isTerminal: boolean
  /** A person looks at what is told meanwhile. */
  readonly isTold: boolean
  readonly paint: Paint
  size(): Size
  /** Opens the whole screen, if keys can be read as well. */
  openScreen?(onKey: (key: Key) => void, onResize: () => void): Screen
}

/** The whole screen, until it is closed. */
export interface Screen {
  /** Draws all lines; each must fit. */
  draw(lines: readonly string[]): void
  /** Puts the terminal back as it was. Calling it again is harmless. */
  close(): void
}
