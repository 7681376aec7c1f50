/** Calls that every user has in a month. */
export const monthlyCalls = 10

/** Where a month begins and ends. */
export const timeZone = 'America/Santiago'

/** Credits that are put aside for a completion, whose real cost is known only afterwards. */
export const estimatedCredits = 40

/** Credits of a new user. */
export const welcomeCredits = 100

/** A number and a unit, such as `'2 min'`. */
export type Duration = `${number} ${'s' | 'min' | 'h'}`

/** The answer to a call of the API. */
export type CallAnswer =
  | { readonly ok: true; readonly left: number }
  | { readonly ok: false; readonly retryAt: Date | undefined }

/** The answer to a completion. */
export type CompletionAnswer =
  | { readonly ok: true; readonly text: string; readonly cost: number }
  | { readonly ok: false; readonly why: 'not-enough-credits' | 'in-progress' | 'already-done' }

/** What the service does, in one of the two ways. */
export interface Api {
  useCall(userId: string, requestId: string): Promise<CallAnswer>
  complete(userId: string, requestId: string, prompt: string): Promise<CompletionAnswer>
}
