import type { Cuts, Edit } from '../../harness/cut-sources.ts'

/** The tripwire is never set. */
const noWire: readonly Edit[] = [
  [/`SAVEPOINT \$\{name\}`/g, "'DO 0'"],
  [/`RELEASE SAVEPOINT \$\{name\}`/g, "'DO 0'"],
]
/** Texts that begin or end a transaction are sent like any other. */
const unread: Edit = [
  /(?<=const control = )text === undefined \? undefined : controlIn\(text, this\.#quotes\)/g,
  'undefined as undefined | string',
]
/** What the server has ended, it is not known to have ended. */
const unheard: Edit = [/return errno === deadlock \|\| errno === oldSnapshot/g, 'return false']
const usableLater: Edit = [/throw holdfastError\('TX_HANDLE_ENDED'\)/g, 'void 0']

/** What is taken away for each control, by file of packages/holdfast/src, and to which lies that leads. */
export interface Control {
  readonly cuts: Cuts
  readonly sorts: readonly string[]
  /** A control that has not lied by then is missed. */
  readonly count: number
}

const innodb = {
  /** A procedure that commits is not noticed. */
  tripwire: {
    cuts: { 'engines/innodb/tx/transaction.ts': noWire },
    sorts: ['torn', 'lock lost', 'resolved, not saved'],
    count: 2_000,
  },
  /** A deadlock, or an old snapshot, that a body swallows. */
  deadlock_swallowed: {
    cuts: { 'engines/innodb/tx/transaction.ts': noWire, 'engines/innodb/errno.ts': [unheard] },
    sorts: ['resolved, not saved'],
    count: 2_000,
  },
  /** COMMIT, BEGIN and DDL are sent, and nobody looks afterwards. */
  leash: {
    cuts: {
      'engines/innodb/tx/transaction.ts': noWire,
      'drivers/innodb/innodb-leash.ts': [unread],
    },
    sorts: ['torn', 'lock lost', 'resolved, not saved'],
    count: 2_000,
  },
  /** START TRANSACTION in the place of autocommit off: what follows a deadlock is saved, though it is told afterwards. */
  autocommit: {
    cuts: {
      'engines/innodb/tx/transaction.ts': [
        [/return `SET \$\{was\} = @@autocommit[^\n]*/g, "return isolation && 'START TRANSACTION'"],
        [/= `SET autocommit = 1, autocommit = \$\{was\}`/g, "= 'COMMIT'"],
      ],
      'engines/innodb/errno.ts': [unheard],
    },
    sorts: ['rest stayed', 'rejected, but saved'],
    count: 2_000,
  },
  /** The handle works on after the end. */
  late: {
    cuts: { 'drivers/innodb/innodb-leash.ts': [usableLater] },
    sorts: ['late'],
    count: 2_000,
  },
} satisfies Readonly<Record<string, Control>>

const unlooked: readonly Edit[] = [
  [
    /if \(this\.#rolledBack !== undefined \|\| this\.#isGone \|\| !this\.#isOpen\(\)\) throw this\.#over\(\)/g,
    '',
  ],
  [/if \(!this\.#isOpen\(\)\) this\.#rolledBack \?\?= \{ cause: error \}/g, ''],
  [/if \(!this\.#isOpen\(\)\) this\.#isGone = true/g, ''],
]

const sqlite = {
  /** COMMIT and BEGIN are sent like any other statement. */
  leash: {
    cuts: {
      'drivers/sqlite/sqlite-leash.ts': [
        [
          /(?<=const control = )typeof text === 'string' \? controlIn\(text\) : undefined/g,
          'undefined as undefined | string',
        ],
      ],
    },
    sorts: ['torn', 'lock lost', 'resolved, not saved'],
    count: 5_000,
  },
  /** Nobody looks whether SQLite has rolled back by itself. */
  rolled_back: {
    cuts: {
      'drivers/sqlite/sqlite-leash.ts': unlooked,
      'drivers/sqlite/sqlite-run.ts': [
        [
          / {4}connection\.run\(commitText\)/g,
          '    if (connection.isTransaction) connection.run(commitText)',
        ],
      ],
    },
    sorts: ['torn', 'lock lost', 'resolved, not saved'],
    count: 5_000,
  },
  late: {
    cuts: { 'drivers/sqlite/sqlite-leash.ts': [usableLater, ...unlooked] },
    sorts: ['late'],
    count: 5_000,
  },
} satisfies Readonly<Record<string, Control>>

export const controls: Readonly<Record<'innodb' | 'sqlite', Readonly<Record<string, Control>>>> = {
  innodb,
  sqlite,
}
