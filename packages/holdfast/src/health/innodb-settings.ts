import { setGlobal, type SettingName } from '../engines/innodb/health/server.ts'
import { finding, type HealthFinding, type OwnCode } from './finding.ts'
import { isOn } from './setting-value.ts'

type Settings = ReadonlyMap<SettingName, string>

/** What is wrong with a value, and the one it should have; nothing to set where that takes more than a statement. */
interface Judgement {
  readonly code: OwnCode
  readonly means: string
  readonly better?: string
  readonly fix?: string
}

type Judge = (value: string, others: Settings) => Judgement | undefined

const inFile = (name: SettingName, value: string): string =>
  `Set ${name} = ${value} in the server's configuration, and restart it.`

const judges: Partial<Readonly<Record<SettingName, Judge>>> = {
  innodb_flush_log_at_trx_commit: (value) =>
    value === '1'
      ? undefined
      : {
          code: 'log-not-flushed',
          means:
            value === '0'
              ? 'a crash of the server or of the machine takes back what was acknowledged in the last second.'
              : 'a crash of the machine takes back what was acknowledged in the last second.',
          better: '1',
        },
  sync_binlog: (value, others) =>
    value === '1' || !isOn(others.get('log_bin') ?? '')
      ? undefined
      : {
          code: 'binlog-not-synced',
          means: 'after a crash of the machine, replicas may lack what was acknowledged.',
          better: '1',
        },
  innodb_doublewrite: (value) =>
    /^(OFF|0)$/i.test(value)
      ? {
          code: 'doublewrite-off',
          means: 'a page that was half written when the machine crashed stays so.',
          fix: inFile('innodb_doublewrite', 'ON'),
        }
      : undefined,
  innodb_rollback_on_timeout: (value) =>
    isOn(value)
      ? {
          code: 'rollback-on-timeout',
          means:
            "a wait that ends with 1205 rolls back the whole transaction. In one of the application's own, what follows is saved statement by statement.",
          fix: inFile('innodb_rollback_on_timeout', 'OFF'),
        }
      : undefined,
  innodb_deadlock_detect: (value) =>
    isOn(value)
      ? undefined
      : {
          code: 'deadlock-detect-off',
          means: 'a deadlock waits for the whole lock wait timeout instead of being ended at once.',
          better: 'ON',
        },
  innodb_snapshot_isolation: (value) =>
    isOn(value)
      ? undefined
      : {
          code: 'snapshot-isolation-off',
          means:
            'at REPEATABLE READ, an update of a row that has changed since it was read overwrites it silently. guard and locks are not affected.',
          better: 'ON',
        },
  idle_transaction_timeout: (value) =>
    Number(value) === 0
      ? {
          code: 'idle-timeout-unset',
          means: 'a process that hangs inside of a transaction keeps its locks.',
          better: '60',
        }
      : undefined,
  lock_wait_timeout: (value) =>
    Number(value) > 3_600
      ? {
          code: 'metadata-wait-long',
          means: 'DDL that waits for a table keeps everybody else from it for as long.',
          better: '60',
        }
      : undefined,
  performance_schema: (value, others) =>
    isOn(value) || /mariadb/i.test(others.get('version') ?? '')
      ? undefined
      : {
          code: 'performance-schema-off',
          means: 'the server does not tell who waits for whom, so that holdfast locks is refused.',
          fix: inFile('performance_schema', 'ON'),
        },
}

/** Settings of the server, each judged by itself. */
export function examineInnodbSettings(settings: Settings): HealthFinding[] {
  const judged = (Object.entries(judges) as [SettingName, Judge][]).flatMap(([name, judge]) => {
    const value = settings.get(name)
    const found = value === undefined ? undefined : judge(value, settings)
    if (found === undefined) return []
    const { code, means, better, fix = setGlobal(name, better ?? '') } = found
    return [finding(code, `setting ${name}`, `is ${value}: ${means}`, fix)]
  })
  return [...judged, ...examineIsolation(settings)]
}

function examineIsolation(settings: Settings): HealthFinding[] {
  const name = settings.has('transaction_isolation') ? 'transaction_isolation' : 'tx_isolation'
  const level = settings.get(name)
  if (level === 'REPEATABLE-READ')
    return [
      finding(
        'isolation-repeatable-read',
        `setting ${name}`,
        'is REPEATABLE-READ, the default: in transactions of your own, a SELECT before the lock makes later ones show what was there then. guard opens its own at READ COMMITTED.',
        'Nothing, if locks are taken before anything is read; else open such transactions at READ COMMITTED.',
      ),
    ]
  if (level !== 'SERIALIZABLE') return []
  return [
    finding(
      'isolation-serializable',
      `setting ${name}`,
      'is SERIALIZABLE: every SELECT locks what it reads, and MariaDB from 11.6 on ends a transaction with 1020 after each wait for a row.',
      setGlobal(name, "'READ-COMMITTED'"),
    ),
  ]
}
