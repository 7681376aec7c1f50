/** How many may sit in one. */
export const seatsPerRoom = 5
