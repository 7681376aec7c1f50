import type { SourceCode } from 'eslint'
import type { Chain } from '../syntax/chain.ts'
import type { Node } from '../syntax/node.ts'

/** The handle of a transaction as a parameter of a function, under whatever name. */
export function handleOf(
  source: SourceCode,
  parameter: Node | undefined,
): { readonly handle?: Chain } {
  if (parameter?.type !== 'Identifier') return {}
  const root = source
    .getDeclaredVariables(parameter.parent as never)
    .find(({ name }) => name === parameter.name)
  return root === undefined ? {} : { handle: { root, steps: [] } }
}
