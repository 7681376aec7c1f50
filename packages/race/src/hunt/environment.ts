/** Variables of the environment by which processes of a suite differ: their names are told, their values are not. */
import { secret } from './record/http-input.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** What every process has otherwise, and no application asks for. */
const ofRunners =
  /^(?:_|PATH|PWD|OLDPWD|SHLVL|INIT_CWD|NODE_OPTIONS|NODE_CHANNEL_.*|NODE_TEST_.*|npm_.*|VITEST_.*|TINYPOOL_.*|JEST_WORKER_ID|TEST_WORKER_ID|HOLDFAST_HUNT_.*)$/

/** Names of the variables whose values differ. */
export function differing(one: Environment, other: Environment): readonly string[] {
  const names = new Set([...Object.keys(one), ...Object.keys(other)])
  return [...names].filter((name) => one[name] !== other[name] && !ofRunners.test(name)).toSorted()
}

/** What a recording keeps of the environment of its calls. Plain data. */
export interface KeptEnvironment {
  /** What the suite has set itself, without what looks like a secret. */
  readonly values: Readonly<Record<string, string>>
  /** What it has set as well, and whose values are not written down. */
  readonly withheld: readonly string[]
}

/** A URL with a password, or something long and drawn. */
const secretValue = /:\/\/[^/\s]*@|(?=[\w+/=-]*\d)(?=[\w+/=-]*[a-z])[\w+/=-]{24,}/i
const secretName = /auth|key|pwd|private|dsn|webhook/i

/** What the process that was recorded had otherwise than the command that started it. */
export function keptOf(recorded: Environment, command: Environment): KeptEnvironment {
  const names = differing(recorded, command).filter(
    (name) => recorded[name] !== undefined && name !== 'DATABASE_URL',
  )
  const isSecret = (name: string): boolean =>
    secret.test(name) || secretName.test(name) || secretValue.test(recorded[name] ?? '')
  return {
    values: Object.fromEntries(
      names.filter((name) => !isSecret(name)).map((name) => [name, recorded[name] ?? '']),
    ),
    withheld: names.filter(isSecret),
  }
}
