import { type ParseArgsConfig, parseArgs } from 'node:util'

type Options = NonNullable<ParseArgsConfig['options']>

interface CommandShape<S extends { readonly about: string }, O extends Options> {
  /** `bench` or `stress`. */
  readonly command: string
  readonly scenarios: Readonly<Record<string, S>>
  readonly options: O
  /** What each option means, for `--help`. */
  readonly about: Readonly<Record<keyof O, string>>
}

type Values<O extends Options> = ReturnType<
  typeof parseArgs<{ options: O; allowPositionals: true }>
>['values']

interface Command<S, O extends Options> {
  readonly name: string
  readonly scenario: S
  readonly values: Values<O>
}

/**
 * Reads `<scenario> [options]`. What cannot be understood ends the process with status 2 and the
 * list of scenarios; `--help` prints the same list and ends with status 0.
 */
export function readCommand<S extends { readonly about: string }, O extends Options>(
  shape: CommandShape<S, O>,
): Command<S, O> {
  const help = { type: 'boolean' } as const
  let parsed: ReturnType<typeof parseArgs>
  try {
    parsed = parseArgs({ options: { ...shape.options, help }, allowPositionals: true })
  } catch (error) {
    return refuse(shape, (error as Error).message)
  }
  const { values, positionals } = parsed
  if (values['help'] === true) {
    console.log(usage(shape))
    process.exit(0)
  }
  const [name, ...rest] = positionals
  if (name === undefined || rest.length > 0) return refuse(shape, 'one scenario is needed')
  const scenario = Object.hasOwn(shape.scenarios, name) ? shape.scenarios[name] : undefined
  if (scenario === undefined) return refuse(shape, `there is no scenario "${name}"`)
  return { name, scenario, values: values as Values<O> }
}

/** Ends the process as `readCommand` does, for values that only the caller can judge. */
export function refuse<S extends { readonly about: string }, O extends Options>(
  shape: CommandShape<S, O>,
  problem: string,
): never {
  console.error(`${shape.command}: ${problem}\n\n${usage(shape)}`)
  process.exit(2)
}

function usage<S extends { readonly about: string }, O extends Options>({
  command,
  scenarios,
  options,
  about,
}: CommandShape<S, O>): string {
  const list = (entries: readonly (readonly [string, string])[]): string =>
    entries.map(([name, text]) => `  ${name.padEnd(14)}${text}`).join('\n')
  const flags = Object.entries(options).map(([name, { type }]) => {
    const value = type === 'string' ? ' n' : ''
    return [`--${name}${value}`, about[name] ?? ''] as const
  })
  const known = Object.entries(scenarios).map(([name, scenario]) => [name, scenario.about] as const)
  return `usage: npm run ${command} -- <scenario> [options]\n\nscenarios:\n${list(known)}\n\noptions:\n${list(flags)}`
}
