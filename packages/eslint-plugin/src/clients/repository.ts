import type { TSESTree } from '@typescript-eslint/types'
import type { SourceCode } from 'eslint'
import { type Chain, classOf, type Step } from '../syntax/chain.ts'
import { importedBy, isOf } from '../syntax/imports.ts'
import { keyName } from '../syntax/node.ts'
import type { Transaction } from '../transactions/transaction.ts'
import { decoratorsOf } from './known-client.ts'

/**
 * What is done with a repository that Nest injects for the same DataSource: `this.users.save(…)` gives `save`. Both
 * have to be the default, for repositories of another DataSource are meant to be outside.
 */
export function stepsOfRepository(
  source: SourceCode,
  { libraries }: Transaction,
  dataSource: Chain,
  chain: Chain,
): readonly Step[] | undefined {
  const owner = classOf(chain)
  if (!libraries.includes('typeorm') || owner === undefined || owner !== dataSource.root) {
    return undefined
  }
  const [name, opener] = [chain.steps[0]?.name, dataSource.steps[0]?.name]
  if (name === undefined || opener === undefined) return undefined
  const repository = injected(owner, name)
  const inject = decoratorsOf(repository ?? {}).get('InjectRepository')
  if (repository === undefined || inject?.length !== 1) return undefined
  if (!isTypeOrmRepository(source, repository)) return undefined
  const other = decoratorsOf(injected(owner, opener) ?? {})
  const isNamed = ['InjectDataSource', 'InjectEntityManager'].some(
    (decorator) => (other.get(decorator)?.length ?? 0) > 0,
  )
  return isNamed ? undefined : chain.steps.slice(1)
}

function injected(
  owner: TSESTree.ClassDeclaration | TSESTree.ClassExpression,
  name: string,
): TSESTree.TSParameterProperty | undefined {
  for (const member of owner.body.body) {
    if (member.type !== 'MethodDefinition' || member.kind !== 'constructor') continue
    for (const parameter of member.value.params) {
      if (parameter.type !== 'TSParameterProperty') continue
      if (keyName(parameter.parameter) === name) return parameter
    }
  }
  return undefined
}

function isTypeOrmRepository(
  source: SourceCode,
  { parameter }: TSESTree.TSParameterProperty,
): boolean {
  const annotation = parameter.type === 'Identifier' ? parameter.typeAnnotation : undefined
  const type = annotation?.typeAnnotation
  if (type?.type !== 'TSTypeReference') return false
  const imported = importedBy(source, type.typeName)
  return (
    imported !== undefined && imported.name === 'Repository' && isOf(imported.module, 'typeorm')
  )
}
