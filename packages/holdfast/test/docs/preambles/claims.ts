/** What the blocks about claims may take for granted: a table with messages to send, and a queue. */
import { createHoldfast, type Holdfast } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import { migrate } from 'holdfast/schema'
import pg from 'pg'

export { createHoldfast, isHoldfastError, lockKey } from 'holdfast'
export { fromPg } from 'holdfast/drivers/pg'

export const pool: pg.Pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] })
export const hf: Holdfast<pg.PoolClient> = createHoldfast(fromPg(pool))
await migrate(fromPg(pool))
await pool.query(`
  CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL DEFAULT 'acme',
    body text NOT NULL,
    status text NOT NULL DEFAULT 'pending',
    claim_token uuid,
    lease_until timestamptz,
    attempts int NOT NULL DEFAULT 0,
    run_at timestamptz NOT NULL DEFAULT now(),
    last_error text
  );
  CREATE INDEX outbox_pending ON outbox (run_at, id) WHERE status = 'pending';
  CREATE INDEX outbox_turns ON outbox (tenant, run_at, id) WHERE status = 'pending';
  CREATE INDEX outbox_leases ON outbox (lease_until) WHERE status = 'claimed';
  CREATE INDEX outbox_in_flight ON outbox (tenant) WHERE status = 'claimed';
  INSERT INTO outbox (body, run_at)
  SELECT 'message ' || g, now() - interval '1 hour' + g * interval '1 s' FROM generate_series(1, 3) g;
  CREATE TABLE sent (message bigint);
  CREATE TABLE orders (id text PRIMARY KEY, total int NOT NULL);
  CREATE TABLE invoice (id int PRIMARY KEY, sent boolean NOT NULL DEFAULT false);
  INSERT INTO invoice (id) VALUES (1), (2)`)

/** A row of it, as `pg` reads one. */
export interface Message {
  readonly id: string
  readonly tenant: string
  readonly body: string
}

/** Sends it somewhere. */
export async function publish(_message: Message, options: { signal: AbortSignal }): Promise<void> {
  options.signal.throwIfAborted()
}

export async function close(): Promise<void> {
  await pool.end()
}
