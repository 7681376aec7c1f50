/** What Prisma's errors say to a customer, and when to try again. */
import { Refused } from '../refused.ts'

/** What the schema refuses as not unique, the customer is told as a refusal. */
export async function unlessTaken<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (codeOf(error) === 'P2002') throw new Refused(409, 'taken')
    throw error
  }
}

/** Again after a serialization failure or a deadlock. */
export async function retried<T>(work: () => Promise<T>): Promise<T> {
  for (let time = 1; ; time += 1) {
    try {
      return await work()
    } catch (error) {
      if (codeOf(error) !== 'P2034' || time === 5) throw error
    }
  }
}

function codeOf(error: unknown): unknown {
  return (error as { readonly code?: unknown }).code
}
