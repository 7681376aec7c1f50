import type { Driver } from 'holdfast'
import type { PoolClient } from 'pg'

/** A flag, as `--help` shows it and `parseArgs` reads it. */
export interface Flag {
  readonly type: 'string' | 'boolean'
  /** What stands for the value in `--help`: `<role>`. */
  readonly value?: string
  readonly about: string
  readonly required?: boolean
}

/** Where a command reads and writes: the process, in earnest. */
export interface Surroundings {
  readonly environment: Readonly<Record<string, string | undefined>>
  out(text: string): unknown
  err(text: string): unknown
}

/** One call of a command. */
export interface Call {
  /** Flags by name; those that are required are there. */
  readonly flags: Readonly<Record<string, string | boolean | undefined>>
  readonly schema: string | undefined
  /** Prints the result: as JSON with --json, else as the text. */
  print(result: object, text: string): void
  /** Tells people how it goes, on the other stream; silent with --json. */
  tell(line: string): void
  /** Opens the database for as long as `use` runs. */
  database<T>(use: (driver: Driver<PoolClient>) => Promise<T>): Promise<T>
}

/** Did what it should. */
export const done = 0
/** Failed, or found something. */
export const failed = 1
/** The command line was not understood. */
export const misused = 2

/** One command. Each has a file of its own in `commands/`, and a line in `commands/index.ts`. */
export interface Command {
  readonly name: string
  /** One line. */
  readonly about: string
  readonly needsDatabase: boolean
  /** Beyond those that every command has. */
  readonly flags: Readonly<Record<string, Flag>>
  run(call: Call): Promise<number>
}

/** The command line was not understood; the message says why. */
export class Misuse extends Error {}
