import type { Executor } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import type { ServerFacts } from '../server.ts'

/** What is needed to look, or to end what others run. */
export type Purpose = 'look' | 'end'

const rights: Readonly<Record<Purpose, Readonly<Record<ServerFacts['dialect'], string>>>> = {
  look: { mariadb: 'PROCESS', mysql: 'PROCESS' },
  end: { mariadb: 'CONNECTION ADMIN', mysql: 'CONNECTION_ADMIN' },
}

/** MySQL shows who waits for whom in tables of its own. */
const tables = 'GRANT SELECT ON performance_schema.*'

/** What a server has refused, with the GRANT that lets it. */
export async function rightMissing(
  executor: Executor,
  dialect: ServerFacts['dialect'],
  { purpose, pid, cause }: { purpose: Purpose; pid: number; cause: unknown },
): Promise<Error> {
  const [row] = await executor.query({ text: 'SELECT CURRENT_USER() AS who', values: [] })
  const role = accountText(String(row?.['who']))
  const right = rights[purpose][dialect]
  const grants = [
    `GRANT ${right} ON *.* TO ${role}`,
    ...(purpose === 'look' && dialect === 'mysql' ? [`${tables} TO ${role}`] : []),
  ]
  const details = { subject: grants.join('; '), pid, right, role }
  return holdfastError('OBSERVE_RIGHT_MISSING', { cause, details })
}

/** `app@%` as it stands in a GRANT. The name may have an @ in it, the host has none. */
function accountText(account: string): string {
  const at = account.lastIndexOf('@')
  const quoted = (text: string): string =>
    `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`
  return `${quoted(account.slice(0, at))}@${quoted(account.slice(at + 1))}`
}
