import { type Finding, inspect } from 'holdfast/schema'
import { type Command, done, failed } from '../command.ts'

export const doctor: Command = {
  name: 'doctor',
  about: 'Compare the database with what is expected; exit code 1 if it differs',
  needsDatabase: true,
  flags: {
    role: {
      type: 'string',
      value: '<role>',
      about: "The application's role: look at its privileges as well",
    },
  },
  async run({ flags, schema, database, print }) {
    const { role } = flags
    const findings = await database((driver) =>
      inspect(driver, {
        ...(schema === undefined ? {} : { schema }),
        ...(typeof role === 'string' ? { role } : {}),
      }),
    )
    print({ findings }, report(findings))
    return findings.length === 0 ? done : failed
  },
}

function report(findings: readonly Finding[]): string {
  if (findings.length === 0) return 'Everything is as expected.\n'
  const lines = findings.map(
    ({ code, object, what, fix }) => `${object}: ${what} [${code}]\n  ${fix}\n`,
  )
  const count = findings.length === 1 ? '1 finding' : `${findings.length} findings`
  return `${lines.join('\n')}\n${count}. The line below each says what to do.\n`
}
