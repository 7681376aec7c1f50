import type { Driver } from 'holdfast'
import type { Observer } from 'holdfast/observe'
import type { PoolClient } from 'pg'
import type { Config } from './settings/config.ts'
import type { Terminal } from './terminal/terminal.ts'

/** A flag, as `--help` shows it and `parseArgs` reads it. */
export interface Flag {
  readonly type: 'string' | 'boolean'
  /** What stands for the value in `--help`: `<role>`. */
  readonly value?: string
  readonly about: string
  readonly required?: boolean
  /** What it is if it is given without a value. */
  readonly bare?: string
}

/** An argument that is known by its place. */
export interface Argument {
  readonly name: string
  readonly about: string
  /** The words it can be. */
  readonly words?: readonly string[]
  /** It may be left out, with all that follow. */
  readonly optional?: boolean
}

/** Where a command reads and writes: the process, in earnest. */
export interface Surroundings {
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Where a configuration file is looked for, from here upwards. */
  readonly folder: string
  /** From now on a signal to end does not end the process, but is told here. */
  stopSignal(): AbortSignal
  /** From now on these signals do nothing but call the listener, until the function that is returned is called. */
  onSignals(
    names: readonly NodeJS.Signals[],
    listener: (signal: NodeJS.Signals) => void,
  ): () => void
  readonly terminal: Terminal
  out(text: string): unknown
  err(text: string): unknown
}

/** One call of a command. */
export interface Call {
  /** Flags by name; those that are required are there. */
  readonly flags: Readonly<Record<string, string | boolean | undefined>>
  /** Arguments by name; those that are not optional are there. */
  readonly args: Readonly<Record<string, string | undefined>>
  /** As it was typed: what follows a command that hands it on, or `--` of one that runs another. */
  readonly rest: readonly string[]
  readonly schema: string | undefined
  /** Where to connect, if that was said anywhere; it may not be a URL. */
  readonly databaseUrl: string | undefined
  /** What the configuration file says. */
  readonly config: Config
  readonly asJson: boolean
  readonly around: Surroundings
  /** Prints a result: as one line of JSON with --json, else as the text, which is made safe to look at. */
  print(result: object, text: string): void
  /** The same with a text that programs read, such as SQL: exactly as it is. */
  printExact(result: object, text: string): void
  /** The same with a text that was made so already, and then painted. */
  printPainted(result: object, text: string): void
  /** Tells people how it goes, on the other stream; silent with --json. */
  tell(line: string): void
  /** The same, but what comes next takes its place if a person looks. */
  progress(line: string): void
  /** Opens the database for as long as `use` runs. */
  database<T>(use: (driver: Driver<PoolClient>) => Promise<T>): Promise<T>
  /** The same, to look at it. */
  observe<T>(use: (observer: Observer, driver: Driver<PoolClient>) => Promise<T>): Promise<T>
}

/** One command. Each has a file of its own in `commands/`, and a line in `commands/index.ts`. */
export interface Command {
  readonly name: string
  /** One line. */
  readonly about: string
  readonly needsDatabase: boolean
  /** It works on MariaDB and MySQL as well: the database URL may begin with mysql:// or mariadb://. */
  readonly onMysql?: true
  readonly args?: readonly Argument[]
  /** False if neither the schema nor the configuration file matters to it. */
  readonly readsSettings?: false
  /** Beyond those that every command has. */
  readonly flags: Readonly<Record<string, Flag>>
  /** Flags are not ours to read: they are handed on. */
  readonly handsOn?: boolean
  /** What follows `--` is a command that it runs. */
  readonly runsCommand?: boolean
  run(call: Call): Promise<number>
}

/** The flag of every command that changes something. */
export const yesFlag: Flag = { type: 'boolean', about: 'Do it; without this it is only told' }
