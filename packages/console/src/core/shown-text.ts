declare const shown: unique symbol

/**
 * Text that may leave the server. Answers take nothing else, so data cannot get out without having been
 * through the redactor, which is the only other place that makes it.
 */
export type ShownText = string & { readonly [shown]: true }

/** Text of our own: a page, a refusal, a word of the protocol. Never for anything that was read somewhere. */
export function fixedText(text: string): ShownText {
  return text as ShownText
}
