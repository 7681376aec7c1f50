/** Short, so that a paused process is sure to lose it. */
export const leaseMs = 600

/** What holders wrote, in the order in which they did. */
export const leasesTable = `
  CREATE TABLE fenced_write (
    seq bigint GENERATED ALWAYS AS IDENTITY, lease text NOT NULL, token bigint NOT NULL, id text NOT NULL);
  CREATE INDEX ON fenced_write (id)`
