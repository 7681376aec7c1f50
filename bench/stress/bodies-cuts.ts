import type { Cuts, Edit } from '../harness/cut-sources.ts'

export const controlNames = ['t1', 'commit_tag', 'marker', 'late', 'savepoint'] as const
export type ControlName = (typeof controlNames)[number]

export function isControlName(name: string): name is ControlName {
  return (controlNames as readonly string[]).includes(name)
}

/** Texts that begin or end a transaction are sent like any other. */
const unread: Edit = [
  /(?<=const control = )text === undefined \? undefined : controlIn\(text\)/g,
  'undefined as undefined | string',
]

/** What is taken away for each control, by file of packages/holdfast/src. */
export const cuts: Readonly<Record<ControlName, Cuts>> = {
  /** T1 of the review: a body may end its transaction, and nobody asks afterwards who did. */
  t1: {
    'drivers/parts/leash.ts': [unread, [/throw endedInside\(/g, 'void (']],
    'drivers/pg.ts': [[/throw endedInside\(/g, 'void (']],
    'drivers/parts/callback-transaction.ts': [[/throw endedInside\(/g, 'void (']],
  },
  /** COMMIT is believed, whatever the server answers to it. */
  commit_tag: {
    'drivers/pg.ts': [[/tag === rolledBackTag/g, 'tag === undefined']],
    'drivers/parts/callback-transaction.ts': [[/\?\.ending === rolledBackTag/g, '?.ending === 0']],
    'drivers/postgres-js/postgres-js-begin.ts': [
      [/answer\.tag !== commitText/g, 'answer.tag === 0'],
    ],
  },
  /** assertHeld believes the marker, which is a setting and can be written by a body: S19 of the review. */
  marker: {
    'engines/postgres/locks/lock-holders.ts': [
      [
        /SELECT EXISTS \([^)]*\(\) AND l\.granted[^\n]* AS held/g,
        "SELECT (pg_catalog.strpos(coalesce(${marker}, ''), ',x' || number || ',') > 0)::text AS held",
      ],
    ],
  },
  /** The handle works on after the end. */
  late: {
    'drivers/parts/leash.ts': [[/throw holdfastError\('TX_HANDLE_ENDED'\)/g, 'void 0']],
    'drivers/postgres-js/postgres-js-shield.ts': [
      [/throw holdfastError\('TX_HANDLE_ENDED'\)/g, 'void 0'],
    ],
  },
  /** A savepoint that outlives its transaction is ended by its client, on whatever the connection does by then. */
  savepoint: {
    'drivers/postgres-js/postgres-js-shield.ts': [[/if \(queries\.isHeld\) return/g, 'return']],
  },
}
