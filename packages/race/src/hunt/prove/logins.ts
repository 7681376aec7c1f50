/** Whoever has logged in for one test is unknown to the rows of another: the same call, sent by whom the rows know. */
import { secret } from '../record/http-input.ts'
import type { HttpInput, Input, Trial } from '../model.ts'

/** The same trial with both calls sent with the secret headers of the one, and of the other; none if they are the same. */
export function withLoginOf<T extends Trial>(trial: T): readonly T[] {
  const [one, other] = trial.inputs
  if (!differInLogin(one, other)) return []
  const from = `${trial.from}, both sent by the same`
  return [
    { ...trial, inputs: [one, sentAs(other, one)], from },
    { ...trial, inputs: [sentAs(one, other), other], from },
  ]
}

/** Whether each of the two was sent with a secret of its own. */
export function differInLogin(one: Input, other: Input): boolean {
  return JSON.stringify(sentAs(other, one)) !== JSON.stringify(other)
}

function sentAs(input: Input, model: Input): Input {
  if (input.kind !== 'http' || model.kind !== 'http') return input
  const theirs = new Map(loginOf(model))
  const headers = input.headers.map(([name, value]): [string, string] => [
    name,
    secret.test(name) ? (theirs.get(name) ?? value) : value,
  ])
  return { ...input, headers }
}

function loginOf({ headers }: HttpInput): readonly (readonly [string, string])[] {
  return headers.filter(([name]) => secret.test(name))
}
