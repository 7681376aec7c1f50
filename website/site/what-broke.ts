/** The cards of the landing page: a symptom, and the recipe that ends it. */

export const broken: readonly { what: string; how: string; link: string }[] = [
  { what: 'Overspent', how: 'A balance went below zero.', link: '/docs/recipes/wallet' },
  { what: 'Oversold', how: 'Two customers bought the last piece.', link: '/docs/recipes/stock' },
  { what: 'Double-booked', how: 'Two bookings overlap.', link: '/docs/recipes/booking' },
  { what: 'Ran twice', how: 'Every process ran the same cron job.', link: '/docs/recipes/cron' },
  { what: 'Charged twice', how: 'The webhook came again.', link: '/docs/recipes/webhooks' },
  { what: 'Stuck', how: 'A lock stays, and nobody holds it.', link: '/docs/recipes/stuck' },
]
