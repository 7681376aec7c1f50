import type { ClaimsOptions } from '../../packages/holdfast/src/entries/claims.ts'

/** A table of the user's whose rows are worked on, and what the work leaves behind. */
export const claimsTables = `
  CREATE TABLE task (
    id text PRIMARY KEY,
    status text NOT NULL DEFAULT 'pending',
    claim_token uuid,
    lease_until timestamptz,
    attempts int NOT NULL DEFAULT 0
  );
  CREATE INDEX ON task (id) WHERE status = 'pending';
  CREATE INDEX ON task (lease_until) WHERE status = 'claimed';
  CREATE TABLE task_effect (task text NOT NULL, token uuid NOT NULL)`

export const taskOptions: ClaimsOptions = {
  table: 'task',
  columns: { attempts: 'attempts' },
  lease: '1 s',
  // Faults take attempts; none of them is the row's fault.
  maxAttempts: 1_000_000,
}

export interface TaskRow {
  readonly id: string
}
