/** Nothing here goes below its limit: no settlement above what was held, and none after it expired. */
export const tokensBook = {
  options: { name: 'tokens', limit: 40, per: 'lifetime', overrun: 'cap', late: 'refuse' },
  ttlMs: 1_000,
} as const
