/** A folder of `packages/holdfast/src`, and the tests that have to notice when its code is changed. */
export interface Folder {
  /** Files of the folder that are changed; all of them unless named. */
  readonly only?: RegExp
  readonly unit?: readonly string[]
  /** On a real server. */
  readonly database?: readonly string[]
  /** The least score in percent, where one is required. */
  readonly least?: number
}

/** Below `packages/holdfast/test`. Tests that start processes are left out: a change is not active in these. */
export const folders: Readonly<Record<string, Folder>> = {
  core: {
    // Tables of names and texts: no test can tell one text from another.
    only: /^(?!error-codes|event-map|error-entry|driver).*$/,
    unit: ['unit/core/*.test.ts', 'unit/observe/*.test.ts', 'unit/tx/*.test.ts'],
    database: [
      'integration/locks/*.test.ts',
      'integration/leases/lease.test.ts',
      'integration/faults/close*.test.ts',
      'integration/observe/{events,opentelemetry}.test.ts',
    ],
  },
  tx: {
    unit: ['unit/tx/*.test.ts'],
    database: [
      'integration/tx/{at-once,run,limits,call-function,lost-answers,root-client}.test.ts',
      'integration/locks/{exclusion,timeout}.test.ts',
      'integration/observe/{events,opentelemetry}.test.ts',
      'integration/waits/findings.test.ts',
      'conformance/pg.test.ts',
    ],
    least: 85,
  },
  locks: {
    unit: ['unit/locks/*.test.ts'],
    database: [
      'integration/locks/*.test.ts',
      'integration/observe/{events,opentelemetry}.test.ts',
      'integration/waits/findings.test.ts',
      'conformance/pg.test.ts',
    ],
    least: 85,
  },
  rows: {
    unit: ['unit/rows/*.test.ts'],
    database: ['integration/rows/*.test.ts', 'integration/locks/order.test.ts'],
    least: 85,
  },
  'drivers/pg': {
    only: /^(pg.*|pinned-session|sync-wait)\.ts$/,
    unit: ['unit/drivers/*.test.ts'],
    database: [
      'conformance/{pg,sync-wait,sync-replay}.test.ts',
      'integration/drivers/pg.test.ts',
      'integration/tx/*.test.ts',
      'integration/leases/session.test.ts',
      'integration/locks/{exclusion,opening}.test.ts',
      'integration/claims/prepared.test.ts',
    ],
    least: 85,
  },
  drivers: {
    only: /^(?!pg|pinned-session|sync-wait).*$/,
    unit: ['unit/drivers/*.test.ts'],
    database: ['conformance/*.test.ts', 'integration/faults/outage.test.ts'],
  },
  // Leaders are tested with processes.
  leases: {
    only: /^(?!leader).*$/,
    database: ['integration/leases/{guard,lease,role,session}.test.ts'],
  },
  claims: { database: ['integration/claims/*.test.ts'] },
  once: { database: ['integration/once/*.test.ts'] },
  schedule: {
    unit: ['unit/schedule/*.test.ts'],
    database: ['integration/schedule/{controls,fire,policies}.test.ts'],
  },
}
