/**
 * SQL with its values taken out: strings, numbers and comments, which may hold values as well. In doubt more
 * is taken out: what was cut off, as PostgreSQL does with long texts, a backslash whose meaning depends on a
 * setting, and a comment within a comment are masked to the end.
 */
export function maskLiterals(sql: string): string {
  return sql.replaceAll(tokens, (found, ...groups: unknown[]) => {
    const { kept, comment } = groups.at(-1) as Readonly<Record<string, string | undefined>>
    if (kept !== undefined) return found
    return comment === undefined ? '?' : ''
  })
}

const word = String.raw`[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*`
const tokens = new RegExp(
  [
    String.raw`(?<comment>--[^\n]*|\/\*(?:(?!\/\*)[\s\S])*?\*\/|\/\*[\s\S]*$)`,
    String.raw`\$(?<tag>[A-Za-z_]\w*)?\$[\s\S]*?(?:\$\k<tag>\$|$)`,
    String.raw`[eE]'(?:\\[\s\S]|''|[^'\\])*(?:'|\\?$)`,
    String.raw`(?:[bBxXnN]|[uU]&)?'(?:''|[^'\\])*(?:'|\\[\s\S]*$|$)`,
    // Names and parameters stay, as wholes, so that a digit in them is not taken for a number.
    String.raw`(?<kept>(?:[uU]&)?"(?:[^"]|"")*"|\$\d+|${word})`,
    String.raw`"[\s\S]*$`,
    String.raw`\d[\w.]*`,
  ].join('|'),
  'g',
)
