import type { HealthFinding } from 'holdfast/health'
import type { Advice } from 'holdfast/observe'
import type { Masks } from './rule.ts'

/** A sentence without the names that were in it. */
interface Instead {
  readonly what: string
  readonly fix: string
}

/** `plain`: its sentences hold only our words, numbers, and names of the catalogue. */
const adviceSentences: Readonly<Record<Advice['code'], 'plain' | Instead>> = {
  'idle-in-transaction': 'plain',
  'held-across-io': 'plain',
  'long-transaction': 'plain',
  'order-violated': 'plain',
  'missing-claim-index': 'plain',
  'claims-broken': 'plain',
  'deadlock-ahead': 'plain',
  'blocker-not-told': 'plain',
  'hold-leak': 'plain',
  'claim-stranded': 'plain',
  'schedule-late': 'plain',
  'schedule-failed': 'plain',
  'prepared-transaction': {
    what: 'A prepared transaction keeps its locks, and the end of no session releases them.',
    fix: 'End it by COMMIT PREPARED or ROLLBACK PREPARED; pg_prepared_xacts lists them.',
  },
  'xmin-held-back': {
    what: 'Vacuum cannot remove dead rows, because somebody may still see them.',
    fix: 'Look at oldestXmin: end the transaction, or let whoever reads the slot catch up.',
  },
}

const masked: Instead = {
  what: 'The text is masked.',
  fix: 'Run holdfast doctor on the server to read it.',
}

/** Advice as it may be shown: of a code that is not known here, nothing but the code. */
export function shownAdvice({ code, what, fix }: Advice, { on, engine }: Masks): Advice {
  // On InnoDB no sentence of the observer has a name in it.
  const isPlain = engine === 'innodb' && Object.hasOwn(adviceSentences, code)
  if (!on || isPlain) return { code, what, fix }
  const known = Object.hasOwn(adviceSentences, code) ? adviceSentences[code] : masked
  return { code, ...(known === 'plain' ? { what, fix } : known) }
}

/** Codes of the doctor whose sentences are about settings, roles, tables and numbers. */
const plainFindings: ReadonlySet<string> = new Set<HealthFinding['code']>([
  'standby',
  'locks-are-stubs',
  'pooler',
  'clock-differs',
  'server-too-old',
  'server-untested',
  'fsync-off',
  'full-page-writes-off',
  'autovacuum-off',
  'lock-table-small',
  'connections-short',
  'isolation-default',
  'read-only-default',
  'triggers-off',
  'commits-not-durable',
  'commits-not-replicated',
  'idle-timeout-unset',
  'statement-timeout-unset',
  'lock-timeout-unset',
  'lock-timeout-high',
  'deadlock-timeout-odd',
  'activity-hidden',
  'role-superuser',
  'role-writes-all',
  'role-reads-all',
  'role-creates-roles',
  'holds-overdue',
  'claims-stranded',
  'not-checked',
  'several-primaries',
  'replica-writable',
  'log-not-flushed',
  'binlog-not-synced',
  'doublewrite-off',
  'rollback-on-timeout',
  'deadlock-detect-off',
  'snapshot-isolation-off',
  'isolation-repeatable-read',
  'isolation-serializable',
  'metadata-wait-long',
  'performance-schema-off',
  'table-without-transactions',
  'lock-rows-many',
  'rate-limit-unlogged',
])

/** What the others are about, and what is said instead of their sentences. */
const findingSentences: Readonly<Record<string, Instead & { readonly about: string }>> = {
  'long-transaction': {
    about: 'session',
    what: 'has had a transaction open for long; vacuum removes nothing that it may see.',
    fix: 'Look at it under Now, and end it if nobody needs it.',
  },
  'idle-in-transaction': {
    about: 'session',
    what: 'does nothing inside an open transaction, and keeps its locks.',
    fix: 'Look at it under Now, and end it if nobody needs it.',
  },
  'prepared-transaction': {
    about: 'prepared transaction',
    what: 'waits to be ended, and keeps its locks.',
    fix: 'End it by COMMIT PREPARED or ROLLBACK PREPARED; pg_prepared_xacts lists them.',
  },
  'slot-unused': {
    about: 'replication slot',
    what: 'is not in use, and keeps WAL and dead rows.',
    fix: 'Drop it by pg_drop_replication_slot if nobody will come back for it.',
  },
  'tick-stuck': {
    about: 'schedule',
    what: 'has an open tick, and no process has looked since it was due.',
    fix: 'Start this schedule in a process that is running; it takes up what is open.',
  },
}

/** A finding of the doctor as it may be shown. What `inspect` and `check` say is about the catalogue. */
export function shownFinding(finding: HealthFinding, masks: Masks): HealthFinding {
  const { code, severity, group, object, what, fix } = finding
  const ofCatalogue = group === 'schema' || group === 'claims' || code.startsWith('role-')
  // On InnoDB nobody tells their names, so that the sentence has none, and its next step is the one that is right there.
  const isNameless = masks.engine === 'innodb' && code === 'prepared-transaction'
  if (!masks.on || ofCatalogue || isNameless || plainFindings.has(code)) {
    return { code, severity, group, object, what, fix }
  }
  const known = findingSentences[code] ?? { ...masked, about: '' }
  return {
    code,
    severity,
    group,
    object: shownObject(object, known.about, masks),
    what: known.what,
    fix: known.fix,
  }
}

/** `session 4711` has no name in it, `schedule nightly` has. */
function shownObject(object: string, about: string, masks: Masks): string {
  const start = `${about} `
  if (about === '' || !object.startsWith(start)) return masks.text(object)
  const name = object.slice(start.length)
  return `${start}${about === 'session' && /^\d+$/.test(name) ? name : masks.text(name)}`
}
