/** What is planted in the shop, for whoever measures the hunt, and for the shop without it; what races reads nothing of this. */

/** Two endpoints that race, or one with itself. */
export const racy: readonly (readonly [string, string])[] = [
  ['POST /coupons/redeem', 'POST /coupons/redeem'],
  ['POST /shows/book', 'POST /shows/book'],
  ['POST /slots/take', 'POST /slots/take'],
  ['POST /teams/join', 'POST /teams/join'],
  ['POST /points/spend', 'POST /points/spend'],
  ['POST /wallet/withdraw', 'POST /wallet/withdraw'],
  ['POST /profile/tag', 'POST /profile/tag'],
  ['POST /newsletter/join', 'POST /newsletter/join'],
  ['POST /invoices/number', 'POST /invoices/number'],
  ['POST /subscriptions/start', 'POST /subscriptions/start'],
  ['POST /vouchers/claim', 'POST /vouchers/claim'],
  ['POST /drivers/off-call', 'POST /drivers/off-call'],
  ['POST /cart/add', 'POST /cart/checkout'],
  ['POST /orders/pay', 'POST /orders/pay'],
  ['POST /orders/cancel', 'POST /orders/ship'],
  // Only who reads the whole statement sees that these meet, or in which value.
  ['POST /raffles/enter', 'POST /raffles/enter'],
  ['POST /badges/hand-out', 'POST /badges/hand-out'],
  ['POST /items/reserve', 'POST /items/withdraw'],
  ['POST /tables/close', 'POST /tables/seat'],
]

/** Pairs that look alike, and are safe. */
export const safe: readonly (readonly [string, string])[] = [
  ['POST /gift-cards/redeem', 'POST /gift-cards/redeem'],
  ['POST /classes/join', 'POST /classes/join'],
  ['POST /stock/take', 'POST /stock/take'],
  ['POST /purse/withdraw', 'POST /purse/withdraw'],
  ['POST /deposits/transfer', 'POST /deposits/transfer'],
  ['POST /accounts/register', 'POST /accounts/register'],
  ['POST /statements/number', 'POST /statements/number'],
  ['POST /memberships/start', 'POST /memberships/start'],
  ['POST /stars', 'POST /stars'],
  ['POST /rooms/reserve', 'POST /rooms/reserve'],
  ['POST /documents/edit', 'POST /documents/edit'],
  ['POST /passes/claim', 'POST /passes/claim'],
  ['POST /guards/off-call', 'POST /guards/off-call'],
  ['POST /basket/add', 'POST /basket/checkout'],
  ['POST /bills/pay', 'POST /bills/pay'],
  ['POST /returns/approve', 'POST /returns/reject'],
  ['POST /medals/hand-out', 'POST /medals/hand-out'],
]
