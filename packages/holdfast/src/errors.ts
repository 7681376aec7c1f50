export { type ErrorClass, type ErrorCode, type ErrorEntry, errorCodes } from './core/error-codes.ts'
export { type ErrorDetailsOf, errorDetails } from './core/errors/error-details.ts'
export {
  ContentionError,
  DriverError,
  type ErrorDetails,
  HoldfastError,
  type HoldfastErrorOf,
  isHoldfastError,
  LostError,
  RefusedError,
  SchemaError,
  UnknownOutcomeError,
  UsageError,
} from './core/errors.ts'
export type { Blocker } from './core/events/event-map.ts'
