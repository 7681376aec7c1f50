/** Words that SQL takes for its own unless they are quoted. */
const reserved = new Set(
  `all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate collation column
  concurrently constraint create cross current_catalog current_date current_role current_schema current_time
  current_timestamp current_user default deferrable desc distinct do else end except false fetch for foreign freeze from
  full grant group having ilike in initially inner intersect into is isnull join lateral leading left like limit localtime
  localtimestamp natural not notnull null offset on only or order outer overlaps placing primary references returning right
  select session_user similar some symmetric table tablesample then to trailing true union unique user using variadic
  verbose when where window with`.split(/\s+/),
)

/** A name as SQL writes it, each part for itself. */
export function sqlName(name: string): string {
  return name.split('.').map(quoted).join('.')
}

/** Without quotes where it means the same. */
export function quoted(part: string): string {
  const isPlain = /^[a-z_][a-z0-9_$]*$/.test(part) && !reserved.has(part)
  return isPlain ? part : `"${part.replaceAll('"', '""')}"`
}
