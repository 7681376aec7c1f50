import ts from 'typescript-5'
import { finding, type SourceTree, walk } from './source-tree.ts'

const maxLines = 400
const mostFiles = 20
const vagueNames = /^(utils?|helpers?|common|managers?|misc)$/
const kebabCase = /^[a-z0-9]+(-[a-z0-9]+)*$/

/** Files a person reads in one sitting, under names that say what is in them. */
export function checkFiles(sources: SourceTree): string[] {
  const findings: string[] = []
  for (const [path, file] of sources) {
    const lines = file.text.split('\n').length - 1
    if (lines > maxLines) findings.push(`${path}:1 has ${lines} lines, more than ${maxLines}`)
    for (const part of path.replace(/\.ts$/, '').split('/')) {
      if (!kebabCase.test(part)) findings.push(`${path}:1 is not in kebab-case`)
      if (part.split('-').some((word) => vagueNames.test(word))) {
        findings.push(`${path}:1 has a name that says nothing; name it after its main export`)
      }
    }
  }
  return findings
}

/** A folder is seen at one glance: what is in it, and where to look. */
export function checkFolders(paths: Iterable<string>): string[] {
  const counts = new Map<string, number>()
  for (const path of paths) {
    const folder = path.slice(0, path.lastIndexOf('/') + 1)
    counts.set(folder, (counts.get(folder) ?? 0) + 1)
  }
  return [...counts]
    .filter(([, count]) => count > mostFiles)
    .map(([folder, count]) => `${folder || 'src/'} has ${count} files, more than ${mostFiles}`)
}

/** Rooms that may contain statement text. */
const sqlRooms: readonly string[] = ['engines/', 'sql/']

const name = String.raw`["\w.{}]+`
const sql: readonly RegExp[] = [
  // Anywhere in a text, since fragments get composed; the tail tells SQL from prose about SQL.
  new RegExp(
    String.raw`\bSELECT\s+(\*|\d|EXISTS\b|${name}\s*\(|${name}\s*,|${name}\s+(AS|FROM)\b)`,
  ),
  new RegExp(String.raw`\bINSERT\s+INTO\s+${name}`),
  new RegExp(String.raw`\bUPDATE\s+${name}(\s+AS\s+${name})?\s+SET\s`),
  new RegExp(String.raw`\bDELETE\s+FROM\s+${name}`),
  new RegExp(String.raw`\bSET\s+(LOCAL|SESSION|TRANSACTION)\s+${name}`),
  new RegExp(String.raw`\bLOCK\s+TABLE\s+${name}`),
  /^\s*SELECT\s+\S+\s*;?\s*$/,
  /^\s*WITH\s+\S+\s+AS\b/,
  // Only as a whole text: these words also occur in sentences.
  /^\s*(BEGIN|START TRANSACTION|COMMIT|END|ROLLBACK|ABORT)\s*;?\s*$/,
  /^\s*BEGIN\s+(TRANSACTION|WORK|ISOLATION|READ)\b/,
  /^\s*((ROLLBACK\s+TO|RELEASE)\s+)?SAVEPOINT\s+\S+\s*;?\s*$/,
  /^\s*ROLLBACK\s+TO\s+\S+\s*;?\s*$/,
]

/** No SQL text outside the rooms for it, so that another engine is another folder. */
export function checkSql(sources: SourceTree): string[] {
  const findings: string[] = []
  for (const [path, file] of sources) {
    if (sqlRooms.some((room) => path.startsWith(room))) continue
    walk(file, (node) => {
      const text = literalText(node)
      if (text === undefined || isCompared(node)) return
      if (sql.some((pattern) => pattern.test(text))) {
        findings.push(finding(node, 'contains SQL text; statements live in engines/'))
      }
    })
  }
  return findings
}

/** The text of a string or template; what a template inserts becomes `{}`. */
function literalText(node: ts.Node): string | undefined {
  if (ts.isStringLiteralLike(node)) return node.text
  if (!ts.isTemplateExpression(node)) return undefined
  return node.head.text + node.templateSpans.map((span) => `{}${span.literal.text}`).join('')
}

/** `command === 'ROLLBACK'` reads an answer of the server; it sends nothing. */
function isCompared({ parent }: ts.Node): boolean {
  if (ts.isLiteralTypeNode(parent) || ts.isCaseClause(parent)) return true
  if (!ts.isBinaryExpression(parent)) return false
  const { kind } = parent.operatorToken
  return (
    kind === ts.SyntaxKind.EqualsEqualsEqualsToken ||
    kind === ts.SyntaxKind.ExclamationEqualsEqualsToken
  )
}
