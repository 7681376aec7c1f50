/** What is sold. Names without @ and ~: they are the keys of the ledger as they are. */
export const shop = {
  name: 'shop',
  skus: ['mug', 'cup', 'jug', 'pot', 'pan', 'lid'],
  reservationMs: 1_000,
} as const
