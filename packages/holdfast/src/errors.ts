export { type ErrorClass, type ErrorCode, type ErrorEntry, errorCodes } from './core/error-codes.ts'
export { type ErrorDetailsOf, errorDetails } from './core/error-details.ts'
export {
  type Blocker,
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
