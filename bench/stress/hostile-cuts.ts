import type { Cuts } from '../harness/cut-sources.ts'

export const hostileControls = ['unescaped', 'raw', 'shared'] as const
export type HostileControl = (typeof hostileControls)[number]

export function isHostileControl(name: string): name is HostileControl {
  return (hostileControls as readonly string[]).includes(name)
}

/** What is taken away for each control, by file of packages/holdfast/src. */
export const hostileCuts: Readonly<Record<HostileControl, Cuts>> = {
  /** Names of tables and columns go into statements with the quotes that are in them. */
  unescaped: {
    'engines/postgres/sql/identifier.ts': [[/\.replaceAll\('"', '""'\)/g, '']],
  },
  /** What PostgreSQL cannot store is sent to it. */
  raw: {
    'core/storable.ts': [[/return /g, 'return true || ']],
  },
  /** What was done once in one scope counts as done in all. */
  shared: {
    'once/call.ts': [[/scope: keyText\(scope, 'scope'\)/g, "scope: 'all'"]],
  },
}
