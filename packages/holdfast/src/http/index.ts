export type { HttpAnswer } from '../core/errors/http-answer.ts'
export {
  type ExpressErrorResponse,
  expressErrors,
  type FastifyErrorReply,
  fastifyErrors,
  fetchErrors,
  type HonoErrorContext,
  honoErrors,
} from './frameworks.ts'
export { type HttpErrorOptions, httpAnswerOf, refusalAnswerOf } from './http-answer-of.ts'
export { type ErrorStatus, statusOf } from './status-of.ts'
export { type TrpcCode, type TrpcErrorClass, trpcErrors, trpcRetryAfter } from './trpc.ts'
