import type { ClaimsOptions } from '../../packages/holdfast/src/entries/claims.ts'

/** How long a claim lasts, and how often anybody looks for those that are over. */
export const leaseMs = 1_500
export const sweepMs = 400
/** How long a transaction may be idle: a process that is paused in one keeps its rows locked. */
export const idleMs = 1_500
/** Rows in one claim at most. */
export const batch = 50

/** A table of a user, its effects, and a history that the database writes by itself. */
export const claimTables = `
  CREATE TABLE task (
    id bigint PRIMARY KEY,
    tenant text NOT NULL DEFAULT 'one',
    status text NOT NULL DEFAULT 'pending',
    claim_token uuid,
    lease_until timestamptz,
    attempts int NOT NULL DEFAULT 0
  ) WITH (autovacuum_vacuum_scale_factor = 0.02, fillfactor = 70);
  CREATE INDEX ON task (id) WHERE status = 'pending';
  CREATE INDEX ON task (lease_until) WHERE status = 'claimed';
  CREATE INDEX ON task (tenant, id) WHERE status = 'pending';
  CREATE INDEX ON task (tenant) WHERE status = 'claimed';
  CREATE TABLE effect (task bigint NOT NULL, pid int NOT NULL);
  CREATE TABLE history (
    seq bigint GENERATED ALWAYS AS IDENTITY, task bigint NOT NULL, tenant text NOT NULL,
    change int NOT NULL, attempt int NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());
  CREATE FUNCTION remember() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO history (task, tenant, change, attempt)
    VALUES (NEW.id, NEW.tenant, CASE WHEN NEW.status = 'claimed' THEN 1 ELSE -1 END, NEW.attempts);
    RETURN NULL;
  END $$;
  CREATE TRIGGER remember AFTER UPDATE ON task FOR EACH ROW
    WHEN ((OLD.status = 'claimed') IS DISTINCT FROM (NEW.status = 'claimed'))
    EXECUTE FUNCTION remember();`

export const taskOptions: ClaimsOptions = {
  table: 'task',
  columns: { attempts: 'attempts' },
  lease: leaseMs,
  // Nothing fails here, but pauses and kills take attempts.
  maxAttempts: 1_000_000,
}

export interface TaskRow {
  readonly id: string
  readonly tenant: string
}
