import type { Control } from './control.ts'
import type { DatabaseContext } from '../options.ts'
import { GivenUp } from './watch.ts'

/** The context of a seed or an invariant. Once it has been given up, what it still sends would come to the next one. */
export async function withDatabase<T>(
  control: Control,
  work: (database: DatabaseContext) => Promise<T>,
): Promise<T> {
  let over = false
  const query: DatabaseContext['query'] = async (text, values) => {
    if (over) throw new Error('this seed or invariant was given up')
    return control.query(text, values)
  }
  try {
    return await work({
      query,
      sql: (strings, ...values) => {
        const text = strings.reduce((before, after, index) => `${before}$${index}${after}`)
        return query(text, values)
      },
    })
  } catch (error) {
    over = error instanceof GivenUp
    throw error
  }
}
