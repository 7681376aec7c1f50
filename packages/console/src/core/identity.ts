import type { Action, Role } from './wire.ts'

/** Who asks. */
export interface Identity {
  /** For the audit line and the page; not a secret. */
  readonly name: string
  readonly role: Role
  /** Narrows what the console allows; without it everything that the console allows to `operate`. */
  readonly actions?: readonly Action[]
}

const ranks: Readonly<Record<Role, number>> = { metrics: 0, view: 1, operate: 2 }

/** Whether the role of somebody is enough. Unknown roles, of a host application without types, never are. */
export function mayAs(identity: Identity, needed: Role): boolean {
  return (Object.hasOwn(ranks, identity.role) ? ranks[identity.role] : -1) >= ranks[needed]
}
