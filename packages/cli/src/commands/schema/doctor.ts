import type { HealthFinding, HealthGroup, Severity } from 'holdfast/health'
import { claimsFlag, claimsOf } from '../../settings/claims-file.ts'
import type { Command } from '../../command.ts'
import { findingsOf } from '../../product.ts'
import { done, failed } from '../../failure.ts'

export const doctor: Command = {
  name: 'doctor',
  about: 'Look at schema, role, server and what is left behind; exit code 1 on errors and warnings',
  needsDatabase: true,
  onMysql: true,
  flags: {
    role: {
      type: 'string',
      value: '<role>',
      about: "The application's role: look at its privileges and settings as well",
    },
    claims: claimsFlag,
  },
  async run(call) {
    const { flags, schema, database, print } = call
    const { role } = flags
    const claims = await claimsOf(call)
    const named = typeof role === 'string' ? role : undefined
    const findings = await database((driver) => findingsOf(driver, { schema, claims }, named))
    print({ findings }, report(findings))
    return findings.every(({ severity }) => severity === 'note') ? done : failed
  },
}

const titles: Readonly<Record<HealthGroup, string>> = {
  connection: 'Connection',
  server: 'Server',
  role: "The application's role",
  schema: 'Schema',
  claims: 'Tables that rows are claimed from',
  sessions: 'Sessions',
  work: 'Work left behind',
}

const severities: readonly Severity[] = ['error', 'warning', 'note']

function report(findings: readonly HealthFinding[]): string {
  if (findings.length === 0) return 'Everything is as expected.\n'
  const groups = [...new Set(findings.map(({ group }) => group))].map((group) => {
    const own = findings.filter((each) => each.group === group)
    return `${titles[group]}\n\n${own.map(lineOf).join('\n')}\n`
  })
  const counts = severities.flatMap((severity) => {
    const count = findings.filter((each) => each.severity === severity).length
    return count === 0 ? [] : [`${count} ${severity}${count === 1 ? '' : 's'}`]
  })
  return `${groups.join('\n')}\n${counts.join(', ')}. The line below each says what to do.\n`
}

function lineOf({ severity, object, what, code, fix }: HealthFinding): string {
  return `${severity}: ${object}: ${what} [${code}]\n  ${fix}\n`
}
