import { hf } from './database.ts'

/** What the shop has to sell. Declared once; it lives in the ledger, not in a column. */
export const stock = hf.stock({ name: 'shop' })
