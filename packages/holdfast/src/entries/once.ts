/** `holdfast/once`: work that is done once per key, on PostgreSQL. */
import type { Driver } from '../core/driver.ts'
import { postgresOnce } from '../engines/postgres/once/once-keys.ts'
import { type Once, onceOver, type OnceRoomOptions } from '../once/once.ts'

export type { HttpAnswer } from '../core/errors/http-answer.ts'
export { assertOnceOptions } from '../once/call.ts'
export {
  type ExpressRequest,
  type ExpressResponse,
  type FastifyReply,
  type FastifyRequest,
  type IdempotencyOptions,
  idempotentAnswer,
  idempotentExpress,
  idempotentFastify,
  idempotentFetch,
  type ParsedRequest,
} from '../once/http.ts'
export type { JsonOf } from '../once/json-of.ts'
export type { Once, OnceAnswer, OnceDone, OnceRefused, OnceRoomOptions } from '../once/once.ts'
export type { OnceOptions } from '../once/call.ts'

/** Work that is done once, over a driver. */
export function createOnce<Tx>(driver: Driver<Tx>, given: OnceRoomOptions = {}): Once<Tx> {
  return onceOver(postgresOnce, driver, given)
}
