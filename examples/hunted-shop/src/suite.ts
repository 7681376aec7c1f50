/** The shop's own tests, as requests: each is made once, with data far from every limit. */

/** A shop with everything in it, and so much room below each limit. */
export const fillShop = (room: number): string => `
  INSERT INTO customers (id, name) SELECT n, 'customer ' || n FROM generate_series(1, 3) n;
  INSERT INTO coupons VALUES ('SPRING', 0, ${room});
  INSERT INTO gift_cards VALUES ('ROSE', 0, ${room});
  INSERT INTO wallets SELECT n, ${100 * room} FROM generate_series(1, 3) n;
  INSERT INTO purses SELECT n, ${100 * room} FROM generate_series(1, 3) n;
  INSERT INTO deposits SELECT n, ${100 * room} FROM generate_series(1, 3) n;
  INSERT INTO shows VALUES (7, ${room});
  INSERT INTO classes VALUES (4, ${room});
  INSERT INTO teams VALUES (1, 0, 2);
  INSERT INTO stock VALUES ('pen', ${5 * room});
  INSERT INTO orders VALUES (1, 'open', 40), (2, 'paid', 50), (3, 'paid', 60);
  INSERT INTO bills VALUES (1, 'open', 40);
  INSERT INTO returns VALUES (1, 'open'), (2, 'open');
  INSERT INTO carts VALUES (1);
  INSERT INTO baskets VALUES (1);
  INSERT INTO vouchers SELECT n FROM generate_series(1, ${room}) n;
  INSERT INTO passes SELECT n FROM generate_series(1, ${room}) n;
  INSERT INTO counters VALUES ('statements', 100);
  INSERT INTO drivers SELECT n, true FROM generate_series(1, 4) n;
  INSERT INTO guards SELECT n, true FROM generate_series(1, 4) n;
  INSERT INTO points VALUES ('00000000-0000-4000-8000-000000000001', 1, ${50 * room});
  INSERT INTO documents VALUES (1, 1, 'draft');
  INSERT INTO raffles VALUES (1, 'summer');
  INSERT INTO badges SELECT n FROM generate_series(1, ${room}) n;
  INSERT INTO medals SELECT n FROM generate_series(1, ${room}) n;
  INSERT INTO items SELECT generate_series(1, 2);
  INSERT INTO tables SELECT generate_series(1, 2)`

/** What is sent, and the status that the test expects. */
export const requests: readonly (readonly [path: string, body: object, status: number])[] = [
  ['/coupons/redeem', { code: 'SPRING' }, 200],
  ['/coupons/redeem', { code: 'AUTUMN' }, 409],
  ['/gift-cards/redeem', { code: 'ROSE' }, 200],
  ['/shows/book', { show: 7, guest: 'ann' }, 200],
  ['/classes/join', { id: 4, guest: 'ann' }, 200],
  ['/slots/take', { day: 'monday', guest: 'ann' }, 200],
  ['/teams/join', { team: 1, customer: 1 }, 200],
  ['/points/spend', { customer: 1, points: 30 }, 200],
  ['/stock/take', { sku: 'pen', qty: 2 }, 200],
  ['/wallet/withdraw', { customer: 1, amount: 30 }, 200],
  ['/purse/withdraw', { customer: 1, amount: 30 }, 200],
  ['/profile/tag', { customer: 1, tag: 'new' }, 200],
  ['/deposits/transfer', { from: 1, to: 2, amount: 20 }, 200],
  ['/newsletter/join', { email: 'ann@example.com' }, 200],
  ['/accounts/register', { email: 'ann@example.com' }, 200],
  ['/invoices/number', { customer: 1 }, 200],
  ['/statements/number', { customer: 1 }, 200],
  ['/subscriptions/start', { customer: 1 }, 200],
  ['/memberships/start', { customer: 1 }, 200],
  ['/stars', { product: 1, customer: 1 }, 200],
  ['/rooms/reserve', { from: 9, to: 11, guest: 'ann' }, 200],
  ['/documents/edit', { id: 1, body: 'final' }, 200],
  ['/vouchers/claim', { guest: 'ann' }, 200],
  ['/passes/claim', { guest: 'ann' }, 200],
  ['/drivers/off-call', { id: 1 }, 200],
  ['/guards/off-call', { id: 1 }, 200],
  ['/cart/add', { id: 1, price: 5 }, 200],
  ['/cart/checkout', { id: 1 }, 200],
  ['/basket/add', { id: 1, price: 5 }, 200],
  ['/basket/checkout', { id: 1 }, 200],
  ['/orders/pay', { id: 1 }, 200],
  ['/orders/pay', { id: 1 }, 409],
  ['/bills/pay', { id: 1 }, 200],
  ['/orders/ship', { id: 2 }, 200],
  ['/orders/cancel', { id: 3 }, 200],
  ['/returns/approve', { id: 1 }, 200],
  ['/returns/reject', { id: 2 }, 200],
  ['/raffles/enter', { id: 1, guest: 'ann' }, 200],
  ['/badges/hand-out', { guest: 'ann' }, 200],
  ['/medals/hand-out', { guest: 'ann' }, 200],
  ['/items/reserve', { id: 1, guest: 'ann' }, 200],
  ['/items/withdraw', { id: 2 }, 200],
  ['/tables/seat', { table: 1, guest: 'ann' }, 200],
  ['/tables/close', { id: 2 }, 200],
]

/** Makes them all, one after the other, and throws if one is answered otherwise. */
export async function runSuite(send: typeof fetch): Promise<void> {
  for (const [path, body, status] of requests) {
    const response = await send(path, { method: 'POST', body: JSON.stringify(body) })
    await response.text()
    if (response.status !== status) throw new Error(`${path} answered ${response.status}`)
  }
}
