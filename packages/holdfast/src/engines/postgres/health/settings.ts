import type { Row, Statement } from '../../../core/driver.ts'
import { quoteIdentifier } from '../sql/identifier.ts'
import { isTrue } from '../../../core/is-true.ts'
import { eq, ne, plus } from '../sql/operators.ts'

/** Where the value of a setting comes from, the strongest first. */
export type SettingLevel =
  /** The connection itself: its URL, PGOPTIONS, a SET. */
  | 'connection'
  | 'role in database'
  | 'role'
  | 'database'
  | 'all roles'
  /** Command line or environment of the server: ALTER SYSTEM is too weak for it. */
  | 'command line'
  | 'file'
  | 'default'

/** A setting as one role has it in this database. */
export interface Setting {
  readonly name: string
  /** As it was written: with a unit or without, `off` or `false`. */
  readonly value: string
  readonly level: SettingLevel
  /** Needs a restart of the server. */
  readonly needsRestart: boolean
}

/**
 * Settings as the session has them, and what was set for the role, the database or both. Ask outside of
 * any transaction: what is set in one hides where the rest is from.
 */
export function readSettings(names: readonly string[], role: string | undefined): Statement {
  return {
    text: `
SELECT known.name::pg_catalog.text AS name, known.setting AS value, known.reset_val AS reset, known.source AS source,
       (known.context ${eq} 'postmaster')::pg_catalog.text AS "needsRestart", given.value AS given, given.level AS level,
       coalesce($2::pg_catalog.text ${eq} CURRENT_USER, false)::pg_catalog.text AS "own"
FROM pg_catalog.jsonb_array_elements_text($1::pg_catalog.text::pg_catalog.jsonb) AS wanted
JOIN pg_catalog.pg_settings AS known ON known.name ${eq} wanted
LEFT JOIN LATERAL (
  SELECT pg_catalog.substr(entry, pg_catalog.strpos(entry, '=') ${plus} 1) AS value,
         CASE WHEN setrole ${ne} 0 AND setdatabase ${ne} 0 THEN 'role in database' WHEN setrole ${ne} 0 THEN 'role'
              WHEN setdatabase ${ne} 0 THEN 'database' ELSE 'all roles' END AS level
  FROM pg_catalog.pg_db_role_setting
  CROSS JOIN LATERAL pg_catalog.unnest(setconfig) AS entry
  WHERE (setdatabase ${eq} 0 OR setdatabase ${eq} (SELECT oid FROM pg_catalog.pg_database WHERE datname ${eq} pg_catalog.current_database()))
    AND (setrole ${eq} 0 OR setrole ${eq} (SELECT oid FROM pg_catalog.pg_roles WHERE rolname ${eq} $2::pg_catalog.text::pg_catalog.name))
    AND pg_catalog.lower(pg_catalog.split_part(entry, '=', 1)) ${eq} known.name
  ORDER BY setrole ${eq} 0, setdatabase ${eq} 0
  LIMIT 1
) AS given ON true`,
    values: [JSON.stringify(names), role ?? null],
  }
}

const levels: Readonly<Record<string, SettingLevel>> = {
  'database user': 'role in database',
  user: 'role',
  database: 'database',
  global: 'all roles',
  'command line': 'command line',
  'environment variable': 'command line',
  'configuration file': 'file',
  default: 'default',
}

/**
 * Reads the rows of `readSettings`. A setting is left out if this connection's own value stands before
 * the one that the role would get.
 */
export function settingsFrom(rows: readonly Row[]): Map<string, Setting> {
  const found = new Map<string, Setting>()
  for (const row of rows) {
    const name = String(row['name'])
    const needsRestart = isTrue(row['needsRestart'])
    const level = levels[String(row['source'])] ?? 'connection'
    const given = row['given']
    if (isTrue(row['own'])) {
      found.set(name, { name, value: String(row['value']), level, needsRestart })
    } else if (typeof given === 'string') {
      found.set(name, { name, value: given, level: row['level'] as SettingLevel, needsRestart })
    } else if (level === 'file' || level === 'command line' || level === 'default') {
      found.set(name, { name, value: String(row['reset']), level, needsRestart })
    }
  }
  return found
}

/** Who a change is for. */
export interface SettingPlace {
  readonly role: string | undefined
  readonly database: string
}

/** Gives the role a value of its own, before everything but what a connection brings along. */
export function setForRole(
  { name, level }: Setting,
  value: string,
  { role, database }: SettingPlace,
): string {
  if (level === 'connection') return inConnection(name, value)
  const to = `SET ${name} = ${value};`
  if (role === undefined) return `ALTER DATABASE ${quoteIdentifier(database)} ${to}`
  return level === 'role in database'
    ? `ALTER ROLE ${quoteIdentifier(role)} IN DATABASE ${quoteIdentifier(database)} ${to}`
    : `ALTER ROLE ${quoteIdentifier(role)} ${to}`
}

/** Takes a value away where it was set; in the server's files a good one is put over it. */
export function undoSetting(setting: Setting, value: string, place: SettingPlace): string {
  const { name, level, needsRestart } = setting
  const database = quoteIdentifier(place.database)
  switch (level) {
    case 'connection':
      return inConnection(name, value)
    case 'role in database':
      return `ALTER ROLE ${quoteIdentifier(place.role ?? '')} IN DATABASE ${database} RESET ${name};`
    case 'role':
      return `ALTER ROLE ${quoteIdentifier(place.role ?? '')} RESET ${name};`
    case 'database':
      return `${writable(name)}ALTER DATABASE ${database} RESET ${name};`
    case 'all roles':
      return `${writable(name)}ALTER ROLE ALL RESET ${name};`
    case 'command line':
      return `Set ${name} to ${value} on the command line that starts the server, and restart it.`
    case 'file':
    case 'default':
      return needsRestart
        ? `ALTER SYSTEM SET ${name} = ${value}; then restart the server.`
        : `ALTER SYSTEM SET ${name} = ${value}; SELECT pg_catalog.pg_reload_conf();`
  }
}

/** Whoever puts it right is read-only as well. */
function writable(name: string): string {
  return name === 'default_transaction_read_only' ? `SET ${name} = off; ` : ''
}

function inConnection(name: string, value: string): string {
  return `Connect with ${name} = ${value}: the database URL, PGOPTIONS or a SET of the client says otherwise.`
}
