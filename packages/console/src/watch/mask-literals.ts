import type { EngineName } from '../core/wire.ts'

/**
 * SQL with its values taken out: strings, numbers and comments, which may hold values as well. In doubt more
 * is taken out: what was cut off, as PostgreSQL does with long texts, a backslash whose meaning depends on a
 * setting, and a comment within a comment are masked to the end. So are quoted names that no table has
 * (`AS "anna@example.com"`), and what a word can stand for itself (`SET app.user TO anna`, `LISTEN anna`,
 * `ALTER ROLE app SET app.user TO anna`). On MariaDB and MySQL a text may be in double quotes, a name is in backquotes,
 * and a comment may begin with #.
 */
export function maskLiterals(sql: string, engine: EngineName = 'postgres'): string {
  const masked = sql.replaceAll(tokens[engine], (found, ...groups: unknown[]) => {
    const { kept, comment } = groups.at(-1) as Readonly<Record<string, string | undefined>>
    if (kept !== undefined) return found
    return comment === undefined ? '?' : ''
  })
  return masked.replaceAll(bareWords, '$<command> ?').replaceAll(keptSettings, '$<command> ?')
}

/** Statements whose values need no quotes. By now a semicolon ends one wherever it is. */
const bareWords =
  /(?<command>(?:^|;)\s*(?:SET|RESET|LISTEN|UNLISTEN|NOTIFY)\b(?:\s+(?:(?:LOCAL|SESSION)\s+)?[a-z_][\w.]*(?=\s*(?:=|TO\b)))?)[^;]*/gi

/** Settings that are kept with a role, a database, the server or a function: their SET stands within a statement. */
const keptSettings =
  /(?<command>(?:^|;)\s*(?:ALTER|CREATE)\b(?:\s+OR\s+REPLACE\b)?\s+(?:ROLE|USER|DATABASE|SYSTEM|FUNCTION|PROCEDURE|ROUTINE)\b[^;]*?\s(?:SET|RESET)\b(?:\s+[a-z_][\w.]*(?=\s*(?:=|TO\b)))?)[^;]*/gi

const word = String.raw`[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*`
const tagWord = String.raw`[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*`
const comments = String.raw`--[^\n]*|\/\*(?:(?!\/\*)[\s\S])*?\*\/|\/\*[\s\S]*$`
const number = String.raw`\d[\w.]*`

const tokens: Readonly<Record<EngineName, RegExp>> = {
  postgres: oneOf(
    `(?<comment>${comments})`,
    String.raw`\$(?<tag>${tagWord})?\$[\s\S]*?(?:\$\k<tag>\$|$)`,
    String.raw`[eE]'(?:\\[\s\S]|''|[^'\\])*(?:'|\\?$)`,
    String.raw`(?:[bBxXnN]|[uU]&)?'(?:''|[^'\\])*(?:'|\\[\s\S]*$|$)`,
    // Names and parameters stay, as wholes, so that a digit in them is not taken for a number.
    String.raw`(?<kept>"[\w$]*"|\$\d+|${word})`,
    String.raw`(?:[uU]&)?"(?:[^"]|"")*(?:"|$)`,
    number,
  ),
  innodb: oneOf(
    String.raw`(?<comment>#[^\n]*|${comments})`,
    String.raw`[bBxXnN]?'(?:''|[^'\\])*(?:'|\\[\s\S]*$|$)`,
    String.raw`"(?:""|[^"\\])*(?:"|\\[\s\S]*$|$)`,
    String.raw`(?<kept>${'`'}[\w$]*${'`'}|${word})`,
    String.raw`${'`'}(?:[^${'`'}]|${'``'})*(?:${'`'}|$)`,
    number,
  ),
}

function oneOf(...forms: readonly string[]): RegExp {
  return new RegExp(forms.join('|'), 'g')
}
