import { readFileSync } from 'node:fs'
import type { Linter, Rule } from 'eslint'
import { noCheckThenCreate } from './rules/no-check-then-create.ts'
import { noNetworkInTransaction } from './rules/no-network-in-transaction.ts'
import { noRootClientInTransaction } from './rules/no-root-client-in-transaction.ts'
import { noUnawaitedStatement } from './rules/no-unawaited-statement.ts'

/** The plugin, as a flat configuration of ESLint takes it. */
export interface HoldfastPlugin {
  readonly meta: { readonly name: string; readonly version: string }
  readonly rules: Record<string, Rule.RuleModule>
  readonly configs: {
    /** All rules, as errors. */
    readonly recommended: Linter.Config
  }
}

const rules = {
  'no-check-then-create': noCheckThenCreate,
  'no-network-in-transaction': noNetworkInTransaction,
  'no-root-client-in-transaction': noRootClientInTransaction,
  'no-unawaited-statement': noUnawaitedStatement,
}

const { version } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
) as { version: string }

const plugins: Record<string, HoldfastPlugin> = {}

/**
 * Rules about transactions of Prisma, Drizzle, Kysely, TypeORM, pg and Holdfast.
 *
 * @example
 * // eslint.config.js
 * import holdfast from 'eslint-plugin-holdfast'
 * export default [holdfast.configs.recommended]
 */
const plugin: HoldfastPlugin = {
  meta: { name: 'eslint-plugin-holdfast', version },
  rules,
  configs: {
    recommended: {
      name: 'holdfast/recommended',
      plugins,
      rules: Object.fromEntries(Object.keys(rules).map((name) => [`holdfast/${name}`, 'error'])),
    },
  },
}
// The configuration has the plugin itself: ESLint refuses two plugins of one name.
plugins['holdfast'] = plugin

export default plugin
