/** A refusal that the customer is told. */
export class Refused extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** What PostgreSQL refuses by a constraint, the customer is told as a refusal. */
export async function unlessTaken<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (['23505', '23P01'].includes((error as { code?: string }).code ?? '')) {
      throw new Refused(409, 'taken')
    }
    throw error
  }
}
