/** The comment in which sqlcommenter says which request a statement belongs to: `traceparent='00-<trace>-<span>-01'`. */
const comment = /\/\*(?:[^*]|\*(?!\/))*?traceparent='00-([0-9a-f]{32})-(?:[^*]|\*(?!\/))*\*\//

/** The trace that a text names. */
export function traceIn(sql: string): string | undefined {
  return comment.exec(sql)?.[1]
}

/** The text without it: the mark is another one in every run. */
export function withoutTrace(sql: string): string {
  return sql.includes('traceparent') ? sql.replace(comment, '').trim() : sql
}

/** The trace of a `traceparent`, wherever it stands. */
export function traceOf(traceparent: string): string | undefined {
  return /(?:^|\W)00-([0-9a-f]{32})-[0-9a-f]{16}-/.exec(traceparent)?.[1]
}
