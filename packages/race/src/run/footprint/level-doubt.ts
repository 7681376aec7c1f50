/** What may set the level of a session's transactions in a way that is not followed: by a call, or in code that it runs. */
import { codeInside } from '../statement/beyond.ts'
import type { Unit } from '../../gate/unit.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import type { Derived } from './derived.ts'
import type { StatementShape } from '../statement/statement-shape.ts'
import type { TransactionRecord } from './transaction-record.ts'

/** Where nobody knows the level of the session any more, what it does depends on everything. */
export function followLevel(
  found: Derived,
  shapes: readonly StatementShape[],
  unit: Unit,
  record: TransactionRecord,
  catalogue: Catalogue,
): Derived {
  if (mayHaveSetLevel(shapes, unit, catalogue)) record.doubtLevel()
  if (!record.levelInDoubt) return found
  return { ...found, levelInDoubt: true, footprint: { ...found.footprint, opaque: true } }
}

function mayHaveSetLevel(
  shapes: readonly StatementShape[],
  { statements: texts, parameters }: Pick<Unit, 'statements' | 'parameters'>,
  catalogue: Catalogue,
): boolean {
  // Of several at once nobody follows in which order they count, and which of them are undone.
  if (shapes.length > 1 && shapes.some(setsLevel)) return true
  return shapes.some((one, at) => {
    const text = texts[at] ?? ''
    const shape = one.prepares?.shape ?? one
    if (shape.target?.name === 'pg_settings') return true
    if (shape.calls.has('set_config') && callsOnLevel(text, parameters)) return true
    if (shape.executes !== undefined && /isolation/i.test(text)) return true
    if (shape.verb === 'do' && setsInside(text)) return true
    for (const body of codeInside(shape, catalogue)) if (setsInside(body)) return true
    return false
  })
}

function setsLevel({ kind, isolation, resetsIsolation }: StatementShape): boolean {
  return kind === 'local' && (isolation !== undefined || resetsIsolation)
}

/** A `set_config` whose first argument is not plainly another setting. */
function callsOnLevel(text: string, parameters: readonly (string | null)[] = []): boolean {
  const calls = text.match(/set_config/gi) ?? []
  const named = [...text.matchAll(/set_config\s*\(\s*(?:'([\w.]+)'|\$(\d+)(?:::\w+)?)\s*,/gi)]
  if (named.length < calls.length) return true
  return named.some(([, literal, number]) => {
    const name = literal ?? parameters[Number(number) - 1]
    return typeof name !== 'string' || /isolation/i.test(name)
  })
}

/** In a body, where a statement may be put together at run time; asking for the level sets nothing. */
function setsInside(body: string): boolean {
  const rest = body.replaceAll(/current_setting\s*\(\s*'\w+'/gi, '')
  return callsOnLevel(rest) || /isolation|pg_settings|\breset\s+all\b/i.test(rest)
}
