/**
 * Functions of former versions that stay beside those that took their place: a call that was under way while a
 * migration committed goes on with them. A later migration drops them.
 */
export const retired: ReadonlySet<string> = new Set([
  // Until 0.1.
  'draw_grants(smallint, uuid, bigint, bigint, boolean)',
  'move_grants(smallint, uuid, smallint, bigint, bigint, bigint, bigint, bigint, bigint, uuid, text, bigint, jsonb, jsonb, timestamp with time zone, bigint)',
  'open_grant(smallint, uuid, bigint, uuid, text, bigint, jsonb, jsonb, timestamp with time zone, bigint)',
  'refusal(integer[], smallint[], uuid[], boolean[], smallint[], bigint[], bigint[], integer[], text[], text[], bigint[], timestamp with time zone)',
  'replay(smallint, uuid, uuid, text, integer[], smallint[], smallint[], uuid[], bigint[], text[], text[])',
])
