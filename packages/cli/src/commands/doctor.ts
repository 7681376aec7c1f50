import { readFile } from 'node:fs/promises'
import type { Driver } from 'holdfast'
import { type ClaimFinding, type ClaimsOptions, createClaims } from 'holdfast/claims'
import { type Finding, inspect } from 'holdfast/schema'
import { type Command, done, failed, Misuse } from '../command.ts'

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
    claims: {
      type: 'string',
      value: '<file>',
      about: 'JSON with an array of claims options: look at those tables instead of the schema',
    },
  },
  async run({ flags, schema, database, print }) {
    const { role, claims } = flags
    const tables = typeof claims === 'string' ? await optionsIn(claims) : undefined
    const findings = await database(
      async (driver): Promise<readonly (Finding | ClaimFinding)[]> => {
        if (tables !== undefined) return await checkAll(driver, tables)
        return await inspect(driver, {
          ...(schema === undefined ? {} : { schema }),
          ...(typeof role === 'string' ? { role } : {}),
        })
      },
    )
    print({ findings }, report(findings))
    return findings.length === 0 ? done : failed
  },
}

async function checkAll<Tx>(
  driver: Driver<Tx>,
  tables: readonly ClaimsOptions[],
): Promise<readonly ClaimFinding[]> {
  const findings: ClaimFinding[] = []
  for (const options of tables) findings.push(...(await createClaims(driver, options).check()))
  return findings
}

/** What `hf.claims(…)` is called with, one table or several. */
async function optionsIn(file: string): Promise<readonly ClaimsOptions[]> {
  let content: unknown
  try {
    content = JSON.parse(await readFile(file, 'utf8'))
  } catch {
    throw new Misuse(`--claims: ${file} cannot be read as JSON.`)
  }
  const tables = Array.isArray(content) ? (content as unknown[]) : [content]
  const isTable = (value: unknown): boolean =>
    typeof value === 'object' && value !== null && 'table' in value
  if (!tables.every(isTable)) throw new Misuse('--claims: each entry needs at least a table.')
  return tables as readonly ClaimsOptions[]
}

function report(findings: readonly (Finding | ClaimFinding)[]): string {
  if (findings.length === 0) return 'Everything is as expected.\n'
  const lines = findings.map(
    ({ code, object, what, fix }) => `${object}: ${what} [${code}]\n  ${fix}\n`,
  )
  const count = findings.length === 1 ? '1 finding' : `${findings.length} findings`
  return `${lines.join('\n')}\n${count}. The line below each says what to do.\n`
}
