/**
 * A race that is none if one of its answers, which no serial order gives, says no: `{"result":"conflict"}` with a status
 * of 2xx. To refuse is safe in any order, so that who has told us nothing of refusals is asked.
 */
import { readJson } from '../../core/read-json.ts'
import type { FlowOutcome, Report } from '../../core/model.ts'
import { guessRefusal, type RefusalRule, type Refusals } from '../edges/refusals.ts'

export interface Supposed {
  readonly name: string
  readonly rule: RefusalRule
}

/** The answers of a race that may be refusals. `names` are those of the calls, undefined for one that only reads. */
export function supposedOf(
  { failure }: Report,
  names: readonly (string | undefined)[],
  { isOpen }: Pick<Refusals, 'isOpen'>,
): readonly Supposed[] {
  if (failure === undefined) return []
  return failure.run.outcomes.flatMap((outcome, flow): Supposed[] => {
    const name = names[flow]
    const answer = acceptedOf(outcome)
    if (name === undefined || answer === undefined || !isOpen(answer.is)) return []
    const serial = failure.serial.flatMap(({ run }) => acceptedOf(run.outcomes[flow]) ?? [])
    const rule = guessRefusal(
      serial.map(({ is }) => is),
      answer.is,
    )
    return rule ? [{ name, rule }] : []
  })
}

/** Why it is undecided then. */
export function supposedText(supposed: readonly Supposed[]): string {
  const [first] = supposed
  const each = supposed.map(({ name, rule }) => `${name} answers with ${rule.text}`)
  return `it is a race only if that is no refusal: ${each.join(', and ')}, which it does in no serial order. If it is one, say so: --refused '${first?.rule.text ?? ''}'; if it is none, say what is one`
}

function acceptedOf(outcome: FlowOutcome | undefined): { readonly is: unknown } | undefined {
  if (outcome?.kind !== 'returned' || outcome.said !== 'accepted') return undefined
  return { is: readJson(outcome.value) ?? outcome.value }
}
