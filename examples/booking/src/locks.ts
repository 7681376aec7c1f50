import { type LockNamespace, lockNamespace } from 'holdfast'

export const deskLock: LockNamespace = lockNamespace('desk', 'Bookings of one desk')
export const guestLock: LockNamespace = lockNamespace('guest', 'Bookings of one guest')
