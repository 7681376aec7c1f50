import * as parser from '@typescript-eslint/parser'
import { Linter, type Rule } from 'eslint'
import plugin from '../../src/index.ts'

/** What was reported, and where. */
export interface Report {
  readonly line: number
  readonly rule: string
  readonly message: string
}

export interface LintOptions {
  /** Where the file pretends to be; tests and scripts are told by it. */
  readonly filename?: string
  /** The folder of a project with types; without it there are none. */
  readonly typesFrom?: string
  /** ESLint of another version. */
  readonly Linter?: typeof Linter
  /** Other rules in the place of ours. */
  readonly rules?: Record<string, Rule.RuleModule>
}

/** Lints a text with all rules, as ESLint with typescript-eslint's parser does. */
export function lintCode(code: string, options: LintOptions = {}): Report[] {
  const { filename = 'src/service.ts', typesFrom, rules = plugin.rules } = options
  const linter = new (options.Linter ?? Linter)({ cwd: typesFrom ?? '/project' })
  const types = typesFrom === undefined ? {} : { projectService: true, tsconfigRootDir: typesFrom }
  const messages = linter.verify(
    code,
    [
      {
        files: ['**/*.{ts,tsx,js,mjs,cjs}'],
        languageOptions: {
          parser: parser as unknown as Linter.Parser,
          parserOptions: { sourceType: 'module', ...types },
        },
        plugins: { holdfast: { ...plugin, rules } },
        rules: Object.fromEntries(Object.keys(rules).map((name) => [`holdfast/${name}`, 'error'])),
      },
    ],
    { filename: `${typesFrom ?? '/project'}/${filename}` },
  )
  return messages.map(({ line, ruleId, message }) => ({
    line,
    rule: ruleId?.replace('holdfast/', '') ?? 'error',
    message,
  }))
}

/** What a fixture says about itself: `// ✗ rule` at the end of a line that is wrong. */
export function expectedOf(code: string): string[] {
  return code.split('\n').flatMap((text, at) => {
    const rules = /\/\/ ✗ (.+)$/.exec(text)?.[1]?.split(' ') ?? []
    return rules.map((rule) => `${at + 1} ${rule}`)
  })
}

/** What was reported, as fixtures write it. */
export function found(reports: readonly Report[]): string[] {
  return reports.map(({ line, rule, message }) => `${line} ${rule === 'error' ? message : rule}`)
}
