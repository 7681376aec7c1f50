import type { Footprint } from '../../core/model.ts'
import type { Control } from '../connection/control.ts'
import { levelNamed } from '../statement/session-setting.ts'

export interface ServerFacts {
  readonly version: string
  readonly isolation: Footprint['isolation']
  /** Time limits of the server's or the role's settings are switched off for the flows. */
  readonly startOptions: string
}

export async function readServer(control: Control): Promise<ServerFacts> {
  const rows = await control.query(
    `SELECT name, reset_val AS setting FROM pg_catalog.pg_settings
     WHERE name IN ('server_version', 'default_transaction_isolation', 'statement_timeout',
                    'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`,
  )
  const settings = new Map(rows.map((row) => [String(row['name']), String(row['setting'])]))
  const level = settings.get('default_transaction_isolation')
  const limits = [...settings].filter(([name, value]) => name.endsWith('timeout') && value !== '0')
  return {
    version: `PostgreSQL ${settings.get('server_version')?.split(' ')[0] ?? ''}`,
    isolation: levelNamed(level ?? ''),
    startOptions: limits.map(([name]) => `-c ${name}=0`).join(' '),
  }
}
