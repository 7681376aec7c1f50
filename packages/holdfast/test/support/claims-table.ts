import type { ClaimsOptions } from '../../src/entries/claims.ts'

/** A table of a user, with everything that claims can use; each test takes one of its own. */
export function tableText(name: string): string {
  return `
    CREATE TYPE ${name}_state AS ENUM ('new', 'busy', 'ok', 'given up');
    CREATE TABLE ${name} (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      tenant text NOT NULL DEFAULT 'a',
      state ${name}_state NOT NULL DEFAULT 'new',
      rank int NOT NULL DEFAULT 0,
      due timestamptz NOT NULL DEFAULT clock_timestamp(),
      tries int NOT NULL DEFAULT 0,
      token uuid,
      until timestamptz,
      owner text,
      why text
    );
    CREATE INDEX ON ${name} (due, id) WHERE state = 'new';
    CREATE INDEX ON ${name} (until) WHERE state = 'busy'`
}

/** What `tableText` makes, as claims are told about it. */
export function optionsFor(table: string): ClaimsOptions {
  return {
    table,
    columns: {
      status: 'state',
      token: 'token',
      leaseUntil: 'until',
      attempts: 'tries',
      runAt: 'due',
      error: 'why',
      holder: 'owner',
    },
    values: { pending: 'new', claimed: 'busy', done: 'ok', dead: 'given up' },
    backoff: { first: 1, most: 1 },
  }
}
