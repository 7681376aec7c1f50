/** One process of the service. It books what its parent asks for, in the way that WAY says. */
import { book as byConstraint } from '../src/book-by-constraint.ts'
import { book as guarded } from '../src/book-guarded.ts'
import { book as unguarded } from '../src/book-unguarded.ts'
import type { NewBooking } from '../src/booking.ts'
import { hf, prisma } from '../src/database.ts'

const ways = { unguarded, byConstraint, guarded }
export type Way = keyof typeof ways

export interface Asked {
  readonly id: number
  readonly booking: NewBooking
}

export interface Answered {
  readonly id: number
  readonly answer: 'booked' | 'refused' | 'failed'
}

async function answer({ id, booking }: Asked): Promise<void> {
  const book = ways[process.env['WAY'] as Way]
  let told: Answered['answer'] = 'failed'
  try {
    told = (await book(booking)) ? 'booked' : 'refused'
  } catch (error) {
    console.error(error)
  }
  process.send?.({ id, answer: told } satisfies Answered)
}

// The first statement of a client opens its connection.
await hf.locks.selfTest()
process.on('message', (asked: Asked) => void answer(asked))
process.once('disconnect', () => void prisma.$disconnect())
process.send?.('ready')
